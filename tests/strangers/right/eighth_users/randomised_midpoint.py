"""Randomised midpoint discretisation of underdamped Langevin (Shen and Lee, 2019), unit mass."""
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


class Phase(NamedTuple):
    position: jax.Array
    velocity: jax.Array


def ou_pair(key, friction, t, like):
    """(X, V) of dX = V dt, dV = - friction V dt + sqrt(2 friction) dB, from (0, 0), at time t."""
    lost = -jnp.expm1(-friction * t)
    u = friction * t / 2
    series = u**3 / 3 - 2 * u**5 / 15 + 17 * u**7 / 315 - 62 * u**9 / 2835
    excess = jnp.where(u < 0.1, series, u - jnp.tanh(u))
    a, b = jax.random.normal(key, (2, *like.shape), like.dtype)
    v = jnp.sqrt(lost * (2 - lost)) * a
    return lost**1.5 / (friction * jnp.sqrt(2 - lost)) * a + 2 * jnp.sqrt(excess) / friction * b, v


@dataclass(frozen=True)
class RandomisedMidpoint:
    friction: float = 2.0

    def __post_init__(self):
        assert self.friction > 0

    def init(self, key, position, estimator):
        flat, unravel = ravel_pytree(position)
        return Phase(position, unravel(jax.random.normal(key, flat.shape, flat.dtype)))

    def step(self, key, state, step_size, estimator):
        g, h = self.friction, step_size
        x, unravel = ravel_pytree(state.position)
        v, _ = ravel_pytree(state.velocity)
        batch, when, first, second = jax.random.split(key, 4)
        slope = lambda q: ravel_pytree(estimator.estimate(batch, (), unravel(q))[0].gradient)[0]
        psi = lambda t: -jnp.expm1(-g * t) / g
        early = jax.random.uniform(when, dtype=x.dtype) * h
        late = h - early
        (x1, v1), (x2, v2) = ou_pair(first, g, early, x), ou_pair(second, g, late, x)
        mid = x + psi(early) * v - (early - psi(early)) / g * slope(x) + x1
        force = slope(mid)
        new_x = x + psi(h) * v - h * psi(late) * force + x1 + psi(late) * v1 + x2
        new_v = jnp.exp(-g * h) * v - h * jnp.exp(-g * late) * force + jnp.exp(-g * late) * v1 + v2
        return Phase(unravel(new_x.astype(x.dtype)), unravel(new_v.astype(x.dtype)))
