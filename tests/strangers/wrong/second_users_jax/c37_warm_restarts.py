"""Underdamped Langevin dynamics with warm restarts, as in SGDR: buffers are cleared when a cycle ends."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp


class State(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    count: jax.Array


@dataclass(frozen=True)
class Restarted:
    friction: float = 1.0

    cycle = 1000

    def init(self, key, position, estimator):
        momentum = jax.random.normal(key, position.shape, position.dtype)
        return State(position, momentum, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        key_gradient, key_noise = jax.random.split(key)
        gradient = estimator.estimate(key_gradient, (), state.position)[0].gradient
        keep = jnp.exp(-self.friction * step_size).astype(gradient.dtype)
        noise = jax.random.normal(key_noise, gradient.shape, gradient.dtype)
        momentum = keep * (state.momentum - step_size * gradient) + jnp.sqrt(1 - keep**2) * noise
        position = state.position + step_size * momentum
        count = state.count + 1
        momentum = jax.lax.cond(count % self.cycle == 0, jnp.zeros_like, lambda r: r, momentum)
        return State(position, momentum, count)
