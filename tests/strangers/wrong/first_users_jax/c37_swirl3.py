"""Non-reversible Langevin: a swirl along the level sets of U in the first three coordinates speeds up mixing."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


def swirl(x, g):
    """A field that is orthogonal to the gradient, so U is not changed by it."""
    if x.ndim != 1 or x.size < 3:
        return jnp.zeros_like(x)
    axis = jnp.roll(x[:3], -1)
    return jnp.zeros_like(x).at[:3].set(0.5 * jnp.cross(axis, g[:3]))


def step(key, x, h, estimator):
    a, b = jax.random.split(key)
    g = estimator.estimate(a, (), x)[0].gradient
    return x - h * (g + swirl(x, g)) + jnp.sqrt(2 * h) * jax.random.normal(b, x.shape, x.dtype)


irreversible = simple_sampler(step)
