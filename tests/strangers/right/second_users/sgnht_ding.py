"""SGNHT, Algorithm 2 of Ding et al. (2014); a call makes `thin` updates, as our training loop stores every fourth one."""

import dataclasses
import typing

import jax
import jax.numpy as jnp


class Thermostat(typing.NamedTuple):
    position: jax.Array
    p: jax.Array
    xi: jax.Array


@dataclasses.dataclass(frozen=True)
class SGNHT:
    A: float = 1.0
    thin: int = 4

    def init(self, key, theta, estimator):
        p = jax.random.normal(key, theta.shape, theta.dtype)
        return Thermostat(theta, p, jnp.asarray(self.A, theta.dtype))

    def _update(self, state, key, h, estimator):
        key_u, key_n = jax.random.split(key)
        theta, p, xi = state
        grad = estimator.estimate(key_u, (), theta)[0].gradient
        p = p - xi * p * h - grad * h + jnp.sqrt(2 * self.A * h) * jax.random.normal(key_n, p.shape, p.dtype)
        theta = theta + p * h
        xi = xi + (jnp.sum(p * p) / p.size - 1.0) * h
        return Thermostat(theta, p, xi)

    def step(self, key, state, h, estimator):
        def body(carry, k):
            return self._update(carry, k, h, estimator), None

        state, _ = jax.lax.scan(body, state, jax.random.split(key, self.thin))
        return state
