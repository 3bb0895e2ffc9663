"""Generalised HMC of Horowitz (1991): the momentum is refreshed in part, one leapfrog step, Metropolis, flip on rejection."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Phase(NamedTuple):
    position: Any
    momentum: Any


@dataclass(frozen=True)
class GHMC:
    friction: float = 1.0

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        return Phase(position, jax.random.normal(key, position.shape, position.dtype))

    def step(self, key, state, dt, estimator):
        k_model, k_refresh, k_accept = jax.random.split(key, 3)
        model = lambda q: estimator.estimate(k_model, (), q)[0]

        # Ornstein-Uhlenbeck part: dp = -friction p dt + sqrt(2 friction) dW
        x, p = state
        xi = jax.random.normal(k_refresh, p.shape, p.dtype)
        p = jnp.exp(-self.friction * dt) * p + jnp.sqrt(2 * self.friction * dt) * xi

        here = model(x)
        half = p - 0.5 * dt * here.gradient
        y = x + dt * half
        there = model(y)
        r = half - 0.5 * dt * there.gradient
        delta = there.potential - here.potential + 0.5 * (jnp.sum(r**2) - jnp.sum(p**2))

        accept = jnp.log(jax.random.uniform(k_accept, dtype=x.dtype)) < -delta
        return Phase(jnp.where(accept, y, x), jnp.where(accept, r, -p))
