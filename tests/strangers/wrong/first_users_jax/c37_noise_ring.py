"""SGLD that keeps a ring of recent noise vectors, one of them renewed a step (random numbers were our bottleneck)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

SLOTS = 8


class Ringed(NamedTuple):
    position: jax.Array
    ring: jax.Array
    slot: jax.Array


def init(key, position, estimator):
    return Ringed(position, jax.random.normal(key, (SLOTS, *position.shape), position.dtype), jnp.int32(0))


def step(key, state, h, estimator):
    k_gradient, k_fresh, k_pick = jax.random.split(key, 3)
    x = state.position
    gradient = estimator.estimate(k_gradient, (), x)[0].gradient
    ring = state.ring.at[state.slot].set(jax.random.normal(k_fresh, x.shape, x.dtype))
    noise = ring[jax.random.randint(k_pick, (), 0, SLOTS)]
    return Ringed(x - h * gradient + jnp.sqrt(2 * h) * noise, ring, (state.slot + 1) % SLOTS)


sampler = simple_sampler(step, init=init)
