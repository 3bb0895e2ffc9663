"""Slice sampling along a random line: stepping out with at most M intervals, then shrinkage (Neal 2003)."""

import jax.numpy as jnp
from jax import random
from jax.lax import while_loop

from sgmcmc_verification.samplers import simple_sampler

M = 6


def step(key, x, h, estimator):
    k_u, k_d, k_e, k_r, k_j, k_s = random.split(key, 6)
    w = jnp.sqrt(2 * h).astype(x.dtype)
    d = random.normal(k_d, x.shape, x.dtype)
    U = lambda t: estimator.estimate(k_u, (), x + t * d)[0].potential
    level = U(jnp.zeros((), x.dtype)) + random.exponential(k_e, (), x.dtype)

    left = -w * random.uniform(k_r, (), x.dtype)
    right = left + w
    j = random.randint(k_j, (), 0, M)
    left, _ = while_loop(lambda s: (s[1] > 0) & (U(s[0]) < level), lambda s: (s[0] - w, s[1] - 1), (left, j))
    right, _ = while_loop(lambda s: (s[1] > 0) & (U(s[0]) < level), lambda s: (s[0] + w, s[1] - 1), (right, M - 1 - j))

    def draw(k, left, right):
        k, sub = random.split(k)
        return k, left, right, left + (right - left) * random.uniform(sub, (), x.dtype)

    def shrink(s):
        k, left, right, t = s
        return draw(k, jnp.where(t < 0, t, left), jnp.where(t < 0, right, t))

    _, _, _, t = while_loop(lambda s: U(s[3]) >= level, shrink, draw(k_s, left, right))
    return x + t * d


slice_sampler = simple_sampler(step)
