"""SGLD whose step is scaled by the Barzilai-Borwein secant of the last move."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class BBState(NamedTuple):
    position: Any
    last_position: Any
    last_gradient: Any


class BarzilaiBorweinSGLD:
    def __init__(self, floor=0.1):
        self.floor = floor

    def init(self, key, position, estimator):
        away_key, batch_key = jax.random.split(key)
        last = position + 0.01 * jax.random.normal(away_key, position.shape, position.dtype)
        return BBState(position, last, estimator.estimate(batch_key, (), last)[0].gradient)

    def step(self, key, state, step_size, estimator):
        batch_key, noise_key = jax.random.split(key)
        x = state.position
        g = estimator.estimate(batch_key, (), x)[0].gradient

        s = x - state.last_position
        y = g - state.last_gradient
        curvature = jnp.abs(jnp.vdot(s, y)) / jnp.vdot(s, s)
        eta = step_size / jnp.maximum(curvature, self.floor)

        noise = jax.random.normal(noise_key, x.shape, x.dtype)
        return BBState(x - eta * g + jnp.sqrt(2 * eta) * noise, x, g)
