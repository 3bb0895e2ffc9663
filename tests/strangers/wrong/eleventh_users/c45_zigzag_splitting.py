"""Zig-Zag process by splitting: drift, switches, drift.

Velocities are +-1 in each coordinate.  Between x + h/2 v and x + h/2 v the sign of coordinate i switches with the
probability 1 - exp(-h max(0, v_i d_i U)), so no bound on the gradient is needed.  An extra refreshment of signs at the
constant rate `refreshment` keeps the process from running in periodic orbits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


class ZigZagState(NamedTuple):
    position: jax.Array
    velocity: jax.Array  # flat, one sign a coordinate


def _signs(key, like):
    return jax.random.rademacher(key, like.shape, like.dtype)


def _probability(step_size, rate):
    """Of at least one event in a time step_size."""
    return -jnp.expm1(-step_size * rate)


def _switch(key, velocity, gradient, step_size):
    rate = jnp.maximum(velocity * gradient, 0)
    event = jax.random.uniform(key, dtype=velocity.dtype) < _probability(step_size, rate)
    return jnp.where(event, -velocity, velocity)


def _refresh(key, velocity, step_size, rate):
    event_key, sign_key = jax.random.split(key)
    event = jax.random.bernoulli(event_key, _probability(step_size, rate), velocity.shape)
    return jnp.where(event, _signs(sign_key, velocity), velocity)


class ZigZag:
    def __init__(self, refreshment=0.5):
        if refreshment < 0:
            raise ValueError("a rate is not negative")
        self.refreshment = refreshment

    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        return ZigZagState(position, _signs(key, flat))

    def step(self, key, state, step_size, estimator):
        gradient_key, switch_key, refresh_key = jax.random.split(key, 3)
        x, unravel = ravel_pytree(state.position)
        v = state.velocity
        x = x + step_size / 2 * v
        gradient, _ = ravel_pytree(estimator.estimate(gradient_key, (), unravel(x))[0].gradient)
        v = _switch(switch_key, v, gradient, step_size)
        v = _refresh(refresh_key, v, step_size, self.refreshment)
        x = x + step_size / 2 * v
        return ZigZagState(unravel(x), v)
