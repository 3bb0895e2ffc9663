"""Random walk Metropolis with delayed rejection: a second, smaller try after a rejection (Tierney and Mira)."""

from functools import partial

import jax.numpy as jnp
from jax import random

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def log_alpha(u_from, u_to):
    return jnp.minimum(0.0, u_from - u_to)


def log1mexp(a):
    """log(1 - exp(a)) for a <= 0."""
    return jnp.log(-jnp.expm1(jnp.minimum(a, -1e-12)))


def delayed_rejection(target, shrink=0.5):
    def step(key, x, h, estimator):
        k_batch, k_first, k_second, k_u1, k_u2 = random.split(key, 5)
        energy = partial(potential, estimator, k_batch)
        scale = jnp.sqrt(2 * h)

        u_x = energy(x)
        y1 = x + scale * random.normal(k_first, x.shape, x.dtype)
        u_1 = energy(y1)
        first = log_alpha(u_x, u_1)
        take_first = jnp.log(random.uniform(k_u1)) < first

        # second stage: proposals are symmetric, so that only the probabilities of the first rejection remain
        y2 = x + shrink * scale * random.normal(k_second, x.shape, x.dtype)
        u_2 = energy(y2)
        second = u_x - u_2 + log1mexp(log_alpha(u_2, u_1)) - log1mexp(first)
        take_second = jnp.log(random.uniform(k_u2)) < second

        return jnp.where(take_first, y1, jnp.where(take_second, y2, x))

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))


def potential(estimator, key, q):
    return estimator.estimate(key, (), q)[0].potential
