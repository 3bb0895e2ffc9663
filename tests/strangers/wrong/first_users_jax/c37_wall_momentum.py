"""Underdamped Langevin for positive parameters, mirrored at zero."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


class Particle(NamedTuple):
    position: jax.Array
    momentum: jax.Array


def init(key, position, estimator):
    return Particle(position, jax.random.normal(key, position.shape, position.dtype))


def step(key, state, h, estimator):
    k_gradient, k_noise = jax.random.split(key)
    x, p = state
    g = estimator.estimate(k_gradient, (), x)[0].gradient
    kept = jnp.exp(-h).astype(p.dtype)
    p = kept * (p - h * g) + jnp.sqrt(1 - kept**2) * jax.random.normal(k_noise, p.shape, p.dtype)
    return Particle(jnp.abs(x + h * p), p)


mirrored = simple_sampler(
    step, init=init, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
)
