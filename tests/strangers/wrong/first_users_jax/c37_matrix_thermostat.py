"""SGNHT, as in Ding et al., with the momentum's temperature held to one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler


class Thermo(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    friction: jax.Array


def init(key, position, estimator):
    return Thermo(position, jax.random.normal(key, position.shape, position.dtype), jnp.ones((), position.dtype))


def step(key, state, h, estimator):
    k_gradient, k_noise = jax.random.split(key)
    x, p, xi = state
    g = estimator.estimate(k_gradient, (), x)[0].gradient
    p = p - h * g - h * xi * p + jnp.sqrt(2 * h) * jax.random.normal(k_noise, p.shape, p.dtype)
    return Thermo(x + h * p, p, xi + h * (jnp.sum(p**2) / len(p) - 1))


sgnht = simple_sampler(step, init=init)
