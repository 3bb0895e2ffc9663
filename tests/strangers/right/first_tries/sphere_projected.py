import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def tangent(x, v):
    return v - jnp.dot(x, v) * x


def step(key, x, h, estimator):
    kg, kn = jax.random.split(key)
    g = estimator.estimate(kg, (), x)[0].gradient
    xi = jax.random.normal(kn, x.shape, x.dtype)
    y = x + tangent(x, -h * g + jnp.sqrt(2 * h) * xi)
    return y / jnp.linalg.norm(y)


on_sphere = simple_sampler(
    step, claims=Claims(Source("brubaker2012", "section 3"), StationaryLaw(), spaces=("sphere",))
)
