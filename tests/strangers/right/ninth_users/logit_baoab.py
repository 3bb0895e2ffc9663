"""Kinetic Langevin (BAOAB) on the unit box through the logit, u = log(x / (1 - x)), x = s(u).

    V(u) = U(s(u)) - sum log s(u) (1 - s(u))          (the second term is the Jacobian dx/du = s (1 - s))
    V'(u) = s (1 - s) U'(s) - (1 - 2 s)
    BAOAB on (u, p) for exp(-V(u) - p^2 / 2)

Right: if u has the density exp(-V), then x = s(u) has exp(-U) on (0, 1).  BAOAB's stationary law is exp(-V) to O(h^2).
Object: LogitBAOAB
"""
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class Unconstrained(NamedTuple):
    u: jax.Array
    p: jax.Array


def slope(key, u, estimator):
    s = jax.nn.sigmoid(u)
    g = estimator.estimate(key, (), s)[0].gradient
    return s * jax.nn.sigmoid(-u) * g + jnp.tanh(u / 2)  # 2 s - 1 = tanh(u / 2)


@dataclass(frozen=True)
class LogitBAOAB:
    friction: float = 1.0

    claims = Claims(Source("", "own"), StationaryLaw(order=2), spaces=("box",))

    def init(self, key, position, estimator):
        return Unconstrained(jax.scipy.special.logit(position), jax.random.normal(key, position.shape, position.dtype))

    def position(self, state):
        return jax.nn.sigmoid(state.u)

    def step(self, key, state, step_size, estimator):
        first, second, noise = jax.random.split(key, 3)
        h = step_size
        dtype = state.u.dtype
        c = jnp.exp(-self.friction * h)
        u, p = state
        p = p - h / 2 * slope(first, u, estimator)
        u = u + h / 2 * p
        p = c * p + jnp.sqrt(1 - c**2) * jax.random.normal(noise, p.shape, dtype)
        u = u + h / 2 * p
        p = p - h / 2 * slope(second, u, estimator)
        return Unconstrained(u.astype(dtype), p.astype(dtype))
