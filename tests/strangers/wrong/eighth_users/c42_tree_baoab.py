"""BAOAB for trees of parameters, with jax.tree.map throughout."""
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Phase(NamedTuple):
    position: Any
    momentum: Any


def normal_like(key, tree):
    return jax.tree.map(lambda a: jax.random.normal(key, a.shape, a.dtype), tree)


def axpy(c, a, b):
    return jax.tree.map(lambda u, v: (c * u + v).astype(v.dtype), a, b)


@dataclass(frozen=True)
class TreeBAOAB:
    friction: float = 1.0

    def init(self, key, position, estimator):
        return Phase(position, normal_like(key, position))

    def step(self, key, state, step_size, estimator):
        k_one, k_two, k_noise = jax.random.split(key, 3)
        q, p = state
        keep = jnp.exp(-self.friction * step_size)
        p = axpy(-step_size / 2, estimator.estimate(k_one, (), q)[0].gradient, p)
        q = axpy(step_size / 2, p, q)
        p = jax.tree.map(lambda a, e: (keep * a + jnp.sqrt(1 - keep**2) * e).astype(a.dtype), p, normal_like(k_noise, p))
        q = axpy(step_size / 2, p, q)
        p = axpy(-step_size / 2, estimator.estimate(k_two, (), q)[0].gradient, p)
        return Phase(q, p)
