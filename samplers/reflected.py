"""A sampler of the whole space made into one of the positive numbers, by mirroring each step at zero."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from samplers.underdamped import MomentumState


@dataclass(frozen=True)
class Reflected:
    """The step of another sampler, after which theta_j and r_j both change sign where theta_j < 0.

        theta' = |theta*|,  r'_j = sign(theta*_j) r*_j,  (theta*, r*) the step of the other sampler

    It is the other sampler on the law mirrored at zero in all coordinates, seen through (|theta|, sign(theta) r).

    Source: patterson2013stochastic, section 3 (expanded-mean parameterisation, mirrored at zero).

    Args:
        sampler: in JAX, with a position and at most a momentum, such as SGLD or SGHMC.

    Error: that of the other sampler on the mirrored law, whose gradient jumps at zero: weak order 1 away from zero, and
    invariant law O(h) for a density that is bounded there.
    """

    sampler: Any

    backend = "jax"

    @property
    def needs(self):
        return self.sampler.needs

    @property
    def claims(self):
        inner = self.sampler.claims
        return replace(
            inner,
            discrete_law=None,
            conditions=(*inner.conditions, "density bounded at the boundary"),
            spaces=("positive",),
        )

    def init(self, key, position, estimator):
        return self.sampler.init(key, position, estimator)

    def step(self, key, state, step_size, estimator):
        state = self.sampler.step(key, state, step_size, estimator)
        position = jax.tree.map(jnp.abs, state.position)
        if isinstance(state, MomentumState):
            mirror = lambda r, x: jnp.where(x < 0, -r, r)
            state = state._replace(momentum=jax.tree.map(mirror, state.momentum, state.position))
        return state._replace(position=position)

    def position(self, state):
        return self.sampler.position(state)

    def unpack(self, state):
        return self.sampler.unpack(state)

    def pack(self, key, z, estimator):
        return self.sampler.pack(key, z, estimator)
