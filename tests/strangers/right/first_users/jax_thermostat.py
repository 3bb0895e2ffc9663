from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp


class State(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    xi: jax.Array


@dataclass(frozen=True)
class AdaptiveLangevin:
    noise: float = 1.0

    def init(self, key, position, estimator):
        p = jax.random.normal(key, position.shape, position.dtype)
        return State(position, p, jnp.asarray(self.noise, position.dtype))

    def step(self, key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, p, xi = state
        x = x + h / 2 * p
        xi = xi + h / 2 * (jnp.mean(p**2) - 1)
        p = p * jnp.exp(-xi * h / 2)
        g = estimator.estimate(k1, (), x)[0].gradient
        p = p - h * g + jnp.sqrt(2 * self.noise * h) * jax.random.normal(k2, x.shape, x.dtype)
        p = p * jnp.exp(-xi * h / 2)
        xi = xi + h / 2 * (jnp.mean(p**2) - 1)
        x = x + h / 2 * p
        return State(x, p, xi)
