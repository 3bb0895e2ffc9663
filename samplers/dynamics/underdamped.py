"""State, dynamics and packing of samplers of the underdamped Langevin equation."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics, Vector, coordinate_names
from sgmcmc_verification.samplers.dynamics.embedded import Friction, friction_matrix
from sgmcmc_verification.samplers.numerics.noise import momentum_like
from sgmcmc_verification.targets.manifolds.base import Point
from sgmcmc_verification.targets.target import Target


class PhasePoint(NamedTuple):
    """The full variable z = (theta, r)."""

    position: Point
    momentum: Point


class MomentumState(NamedTuple):
    """Position, momentum and the estimator's own state."""

    position: Point
    momentum: Point
    estate: Any


def langevin_dynamics(target: Target, friction: Friction, temperature: float = 1.0) -> Dynamics:
    """H = (U + |r|^2 / 2) / T, D = diag(0, C T), Q = T [[0, -I], [I, 0]] (unit mass); C a number or a matrix (n, n).

    Source: ma2015complete, section 3.1 (SGHMC), at temperature T.
    """
    n, C, T = target.size, friction_matrix(friction, target.size), temperature

    def H(z: Vector) -> Float[Array, ""]:
        return (target.flat_potential(z[:n]) + 0.5 * z[n:] @ z[n:]) / T

    def D(z: Vector) -> Float[Array, "k k"]:
        return jnp.zeros((2 * n, 2 * n), z.dtype).at[n:, n:].set(jnp.asarray(C * T, z.dtype))

    def Q(z: Vector) -> Float[Array, "k k"]:
        zero, one = jnp.zeros((n, n), z.dtype), T * jnp.eye(n, dtype=z.dtype)
        return jnp.block([[zero, -one], [one, zero]])

    return Dynamics(H, D, Q, coordinate_names(n, "r"), n)


@runtime_checkable
class PhaseState(Protocol):
    """A state with a position and a momentum, whatever else it holds."""

    @property
    def position(self) -> Point:
        """Position of a state."""
        ...

    @property
    def momentum(self) -> Point:
        """Momentum of a state."""
        ...


class MomentumMixin:
    """init, position, unpack and pack of a sampler with a `MomentumState` and a unit-mass momentum."""

    temperature: float = 1.0

    def init(self, key: Key[Array, ""], position: Point, estimator: Any) -> PhaseState:
        """Start a chain at a position, with a momentum N(0, T)."""
        momentum_key, estimator_key = jax.random.split(key)
        momentum = momentum_like(momentum_key, position, self.temperature)
        return MomentumState(position, momentum, estimator.init(estimator_key, position))

    def position(self, state: PhaseState) -> Point:
        """Position of a state."""
        return state.position

    def unpack(self, state: PhaseState) -> PhasePoint:
        """Full variable z of a state."""
        return PhasePoint(state.position, state.momentum)

    def pack(self, key: Key[Array, ""], z: PhasePoint, estimator: Any) -> PhaseState:
        """State with the full variable z; caches are computed anew."""
        return MomentumState(z.position, z.momentum, estimator.init(key, z.position))


class CachedMomentumMixin(MomentumMixin):
    """A sampler with a momentum whose `pack` computes caches: a chain starts as from a z that is given."""

    def init(self, key: Key[Array, ""], position: Point, estimator: Any) -> Any:
        """Start a chain at a position, with a momentum N(0, T)."""
        momentum_key, pack_key = jax.random.split(key)
        momentum = momentum_like(momentum_key, position, self.temperature)
        return self.pack(pack_key, PhasePoint(position, momentum), estimator)
