"""Barker proposal with bimodal noise (Vogrinc, Livingstone and Zanella 2023), Metropolis corrected."""

import jax
import jax.numpy as jnp
from jax import random

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

TAU = 0.1  # width of each bump; the bumps sit at +-sqrt(1 - tau^2), so the noise has variance one


def propose(key, x, grad, scale):
    bump_key, side_key, flip_key = random.split(key, 3)
    side = random.rademacher(side_key, x.shape, x.dtype)
    z = scale * (side * (1 - TAU**2) ** 0.5 + TAU * random.normal(bump_key, x.shape, x.dtype))
    keep = random.uniform(flip_key, x.shape, x.dtype) < jax.nn.sigmoid(-z * grad)
    return x + jnp.where(keep, z, -z)


def barker(key, x, step_size, estimator):
    est_key, prop_key, acc_key = random.split(key, 3)

    def evaluate(point):
        e = estimator.estimate(est_key, (), point)[0]
        return e.potential, e.gradient

    u_x, g_x = evaluate(x)
    y = propose(prop_key, x, g_x, jnp.sqrt(2 * step_size).astype(x.dtype))
    u_y, g_y = evaluate(y)
    # the noise is symmetric: only the two logistic factors are left of q(y, x) / q(x, y)
    log_q = jnp.sum(jax.nn.log_sigmoid((y - x) * g_y) - jax.nn.log_sigmoid(-(y - x) * g_x))
    accept = jnp.log(random.uniform(acc_key, dtype=x.dtype)) < u_x - u_y + log_q
    return jnp.where(accept, y, x)


sampler = simple_sampler(barker, claims=Claims(Source("livingstone2022barker", "section 4"), ExactLaw()))
