"""What the samplers of the underdamped Langevin equation share: state, dynamics, packing."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from samplers.dynamics.complete_recipe import Dynamics, coordinate_names
from samplers.dynamics.embedded import friction_matrix
from samplers.numerics.noise import normal_like
from targets.target import Target


class PhasePoint(NamedTuple):
    """The full variable z = (theta, r)."""

    position: Any
    momentum: Any


class MomentumState(NamedTuple):
    """Position, momentum and the estimator's own state."""

    position: Any
    momentum: Any
    estate: Any


def langevin_dynamics(target: Target, friction: Any, temperature: float = 1.0) -> Dynamics:
    """H = (U + |r|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]] (unit mass); C a number or a matrix (n, n).

    Source: ma2015complete, section 3.1 (SGHMC), at temperature T.
    """
    n, C, T = target.size, friction_matrix(friction, target.size), temperature

    def H(z):
        return (target.flat_potential(z[:n]) + 0.5 * z[n:] @ z[n:]) / T

    def D(z):
        return jnp.zeros((2 * n, 2 * n), z.dtype).at[n:, n:].set(jnp.asarray(C * T, z.dtype))

    def Q(z):
        zero, one = jnp.zeros((n, n), z.dtype), T * jnp.eye(n, dtype=z.dtype)
        return jnp.block([[zero, -one], [one, zero]])

    return Dynamics(H, D, Q, coordinate_names(n, "r"), n)


class MomentumMixin:
    """init, position, unpack and pack of a sampler with a `MomentumState` and a unit-mass momentum."""

    temperature: float = 1.0

    def init(self, key, position, estimator):
        momentum_key, estimator_key = jax.random.split(key)
        root = jnp.sqrt(self.temperature)
        momentum = jax.tree.map(lambda n: root.astype(n.dtype) * n, normal_like(momentum_key, position))
        return MomentumState(position, momentum, estimator.init(estimator_key, position))

    def position(self, state):
        return state.position

    def unpack(self, state):
        return PhasePoint(state.position, state.momentum)

    def pack(self, key, z, estimator):
        return MomentumState(z.position, z.momentum, estimator.init(key, z.position))
