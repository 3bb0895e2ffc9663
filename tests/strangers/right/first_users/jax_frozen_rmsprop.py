from typing import NamedTuple

import jax
import jax.numpy as jnp


class State(NamedTuple):
    position: jax.Array
    scale: jax.Array


class FrozenRMSprop:
    """SGLD with a diagonal preconditioner from the squared gradient of the start, which stays as it is."""

    def __init__(self, damping=1.0):
        self.damping = damping

    def init(self, key, position, estimator):
        g = estimator.estimate(key, (), position)[0].gradient
        return State(position, 1 / (self.damping + jnp.sqrt(g**2 + 1)))

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        x, scale = state
        g = estimator.estimate(k1, (), x)[0].gradient
        noise = jax.random.normal(k2, x.shape, x.dtype)
        return State(x - step_size * scale * g + jnp.sqrt(2 * step_size * scale) * noise, scale)
