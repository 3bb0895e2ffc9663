"""Langevin on the sphere: a tangent step of the drift, then a random rotation in one random plane."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def step(key, x, h, estimator):
    k_gradient, k_plane, k_angle = jax.random.split(key, 3)
    n = x.size
    g = estimator.estimate(k_gradient, (), x)[0].gradient
    y = x - h * (g - x * jnp.sum(x * g))
    y = y / jnp.linalg.norm(y)
    rows, columns = (jnp.asarray(a) for a in np.triu_indices(n, 1))
    plane = jax.random.randint(k_plane, (), 0, n * (n - 1) // 2)
    i, j = rows[plane], columns[plane]
    angle = jnp.sqrt(2 * h * (n - 1)) * jax.random.normal(k_angle, (), x.dtype)  # n - 1 directions share the noise
    c, s = jnp.cos(angle), jnp.sin(angle)
    return y.at[i].set(c * y[i] - s * y[j]).at[j].set(s * y[i] + c * y[j])


sphere = simple_sampler(step, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("sphere",)))
