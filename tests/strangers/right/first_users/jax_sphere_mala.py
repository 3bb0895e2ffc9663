import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def tangent(x, v):
    return v - x * jnp.sum(x * v)


def step(key, x, h, estimator):
    k_g, k_n, k_u = jax.random.split(key, 3)
    here = estimator.estimate(k_g, (), x)[0]
    mean = -h * tangent(x, here.gradient)
    v = mean + jnp.sqrt(2 * h) * tangent(x, jax.random.normal(k_n, x.shape, x.dtype))

    # along the great circle, with the velocity carried along
    r = jnp.linalg.norm(v)
    y = jnp.cos(r) * x + jnp.sin(r) * v / r
    y = y / jnp.linalg.norm(y)
    w = jnp.cos(r) * v - r * jnp.sin(r) * x

    there = estimator.estimate(k_g, (), y)[0]
    mean_back = -h * tangent(y, there.gradient)
    log_ratio = (
        here.potential
        - there.potential
        + (jnp.sum((v - mean) ** 2) - jnp.sum((-w - mean_back) ** 2)) / (4 * h)
    )
    return jnp.where(jnp.log(jax.random.uniform(k_u, dtype=x.dtype)) < log_ratio, y, x)


geodesic_mala = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("sphere",)))
