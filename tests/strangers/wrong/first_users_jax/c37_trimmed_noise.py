"""SGLD with trimmed noise, against the odd outlier that blew up our runs."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def step(key, x, h, estimator):
    a, b = jax.random.split(key)
    g = estimator.estimate(a, (), x)[0].gradient
    noise = jax.random.truncated_normal(b, -3.0, 3.0, x.shape, x.dtype)
    return x - h * g + jnp.sqrt(2 * h) * noise


trimmed = simple_sampler(step)
