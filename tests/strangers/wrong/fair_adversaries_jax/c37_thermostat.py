"""Stochastic gradient Nose-Hoover thermostat (Ding et al. 2014)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp


class ThermostatState(NamedTuple):
    position: jax.Array
    momentum: jax.Array
    friction: jax.Array


@dataclass(frozen=True)
class NoseHoover:
    diffusion: float = 1.0

    def init(self, key, position, estimator):
        momentum = jax.random.normal(key, position.shape, position.dtype)
        return ThermostatState(position, momentum, jnp.asarray(self.diffusion, position.dtype))

    def step(self, key, state, step_size, estimator):
        gradient_key, noise_key = jax.random.split(key)
        q, p, xi = state
        gradient = estimator.estimate(gradient_key, (), q)[0].gradient
        noise = jax.random.normal(noise_key, p.shape, p.dtype)
        p = p - step_size * (gradient + xi * p) + jnp.sqrt(2 * self.diffusion * step_size).astype(p.dtype) * noise
        q = q + step_size * p
        kinetic = jnp.vdot(p, p) / len(p)
        return ThermostatState(q, p, xi + step_size * (kinetic - 1.0))
