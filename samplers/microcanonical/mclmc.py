"""MCLMC: microcanonical Langevin dynamics, without a Metropolis test."""

from dataclasses import dataclass
from typing import NamedTuple

import jax

from sgmcmc_verification.samplers.entry import LAW_TIERS, Row, plain
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.microcanonical.isokinetic import (
    drift,
    kick,
    refresh,
    require_several,
    uniform_direction,
    unit,
)
from sgmcmc_verification.samplers.validation import require_positive


class DirectedPoint(NamedTuple):
    """The full variable z: position and direction, a pytree like the position of length one over all leaves."""

    position: Position
    direction: Tree


class MicrocanonicalState(NamedTuple):
    """Position, direction, the gradient at the position (a cache) and the estimator's own state."""

    position: Position
    direction: Tree
    gradient: Tree
    estate: EstimatorState


@dataclass(frozen=True)
class MCLMC:
    """B(h/2) A(h) B(h/2) O(h) for dx = u dt, du = P(u) (-grad U / ((d - 1) T) dt + eta dW), |u| = 1, P(u) = I - u u^T.

        B: the force turns the direction (`isokinetic.kick`);  A: x <- x + h u;  O: a part of it is drawn anew

    The law is exp(-U / T) times the uniform one of directions, whatever the length of decoherence L. A step moves by h:
    the step size is a length, not a time of Langevin dynamics.

    Source: robnik2023microcanonical, sections 3 and 4. Differs from the source in:
        1. the temperature T.

    Args:
        decoherence: L > 0, the length after which the direction is forgotten.
        temperature: T > 0; the law is exp(-U / T).

    Error: invariant law O(h^2), for exact gradients: B A B is symmetric, and O keeps the law exactly.

    Raises:
        ValueError: if `decoherence` or `temperature` is not positive, or the position has one coordinate.
    """

    decoherence: float = 2.0
    temperature: float = 1.0

    backend = "jax"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "decoherence", "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return Claims(
            Source("robnik2023microcanonical", "sections 3 and 4"),
            StationaryLaw(order=2, temperature=self.temperature),
            conditions=("exact gradient",),
        )

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> MicrocanonicalState:
        """Start a chain at a position, with a direction drawn from the uniform law."""
        direction_key, rest = jax.random.split(key)
        return self.pack(rest, DirectedPoint(position, uniform_direction(direction_key, position)), estimator)

    def step(
        self, key: jax.Array, state: MicrocanonicalState, step_size: Scalar, estimator: Estimator
    ) -> MicrocanonicalState:
        """Take one step."""
        gradient_key, refresh_key = jax.random.split(key)
        half = step_size / (2 * self.temperature)
        direction, _ = kick(state.direction, state.gradient, half)
        position = drift(state.position, direction, step_size)
        estimate, estate = estimator.estimate(gradient_key, state.estate, position)
        direction, _ = kick(direction, estimate.gradient, half)
        direction = refresh(refresh_key, direction, step_size, self.decoherence)
        return MicrocanonicalState(position, direction, estimate.gradient, estate)

    def position(self, state: MicrocanonicalState) -> Position:
        """Position of a state."""
        return state.position

    def unpack(self, state: MicrocanonicalState) -> DirectedPoint:
        """Full variable z of a state."""
        return DirectedPoint(state.position, state.direction)

    def pack(self, key: jax.Array, z: DirectedPoint, estimator: Estimator) -> MicrocanonicalState:
        """State with the full variable z; caches are computed anew."""
        require_several(z.position)
        init_key, gradient_key = jax.random.split(key)
        estimate, estate = estimator.estimate(gradient_key, estimator.init(init_key, z.position), z.position)
        return MicrocanonicalState(z.position, unit(z.direction), estimate.gradient, estate)


LENGTHS = ({"decoherence": 0.7, "temperature": 0.5}, {"decoherence": 6.0, "temperature": 2.0})
NO_DYNAMICS = "the direction has unit length: the recipe is about Euclidean spaces"
PLANAR = ("gaussian-correlated-2d", "banana")
"""Targets of two coordinates: one alone has no direction that turns."""

ENTRIES: tuple[Row, ...] = (
    Row(
        "mclmc",
        plain(MCLMC),
        tiers=LAW_TIERS,
        unsupported={"recipe": NO_DYNAMICS, "generator": NO_DYNAMICS, "order": NO_DYNAMICS},
        targets=PLANAR,
        variants=LENGTHS,
        step_power=0.5,
    ),
)
