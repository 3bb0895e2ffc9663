"""Delayed acceptance: a cheap quadratic emulator screens proposals, the full model decides on the survivors."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def emulator(x):
    return 0.5 * jnp.sum(x**2)


def step(key, x, h, estimator):
    k_move, k_old, k_new, k_one, k_two = jax.random.split(key, 5)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(k_move, x.shape, x.dtype)
    screened = jnp.minimum(1.0, jnp.exp(emulator(x) - emulator(y)))
    u_x = estimator.estimate(k_old, (), x)[0].potential
    u_y = estimator.estimate(k_new, (), y)[0].potential
    decided = jnp.minimum(1.0, jnp.exp(u_x - u_y) / screened)  # undo the screening
    first = jax.random.uniform(k_one, dtype=x.dtype) < screened
    second = jax.random.uniform(k_two, dtype=x.dtype) < decided
    return jnp.where(first & second, y, x)


sampler = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
