"""Langevin Monte Carlo from function values alone (Roy, Shen, Balasubramanian and Ghadimi 2022).

The gradient is smoothed along Gaussian directions, g = mean_j (U(x + d u_j) - U(x - d u_j)) / (2 d) u_j. The radius d
goes to zero with the step, so that the smoothing bias O(d^2) is of the order of the step size.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import simple_sampler


def zo_langevin(directions: int = 16, smoothing: float = 0.3):
    def smoothed_gradient(keys, flat, value, radius):
        def accumulate(total, key):
            u = jax.random.normal(key, flat.shape, flat.dtype)
            slope = (value(flat + radius * u) - value(flat - radius * u)) / (2 * radius)
            return total + slope * u, None

        total, _ = jax.lax.scan(accumulate, jnp.zeros_like(flat), keys)
        return total / directions

    def step(key, position, step_size, estimator):
        data_key, direction_key, noise_key = jax.random.split(key, 3)
        flat, unflatten = ravel_pytree(position)

        def value(v):
            return estimator.estimate(data_key, (), unflatten(v))[0].potential.astype(flat.dtype)

        radius = jnp.sqrt(step_size).astype(flat.dtype) * smoothing
        gradient = smoothed_gradient(jax.random.split(direction_key, directions), flat, value, radius)
        noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
        return unflatten(flat - step_size * gradient + jnp.sqrt(2 * step_size).astype(flat.dtype) * noise)

    return simple_sampler(step)


sampler = zo_langevin()
