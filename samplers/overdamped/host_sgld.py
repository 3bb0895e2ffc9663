"""SGLD as a library outside JAX would write it: NumPy arrays, a mutable state, noise from a NumPy generator."""

from dataclasses import dataclass

import jax
import numpy as np

from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.entry import FLAT, Row, langevin_row, plain
from sgmcmc_verification.samplers.estimators.host import HostExact, estimator_key
from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position, Scalar
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


@dataclass(eq=False)
class HostState:
    """A chain that `step` changes in place; its leaves are NumPy arrays that it owns."""

    position: Position
    estate: EstimatorState


@dataclass(frozen=True)
class HostSGLD(PositionMixin):
    """theta' = theta - h grad U~(theta) + N(0, 2 h T), for `backend == "host"`.

    Stands for samplers of other frameworks: `key` is a `numpy.random.Generator`, the state is a mutable object,
    nothing is traced, and gradients cross over as NumPy arrays.

    Source: welling2011bayesian, equation (4), with h = epsilon / 2 of the source. Differs from the source in:
        1. the temperature T.

    Args:
        temperature: T > 0; the law is exp(-U / T).

    Error: weak order 1 and invariant law O(h), for exact gradients.

    Raises:
        ValueError: if `temperature` is not positive.
    """

    temperature: float = 1.0

    backend = "host"
    needs = frozenset({"gradient"})

    def __post_init__(self) -> None:
        require_positive(self, "temperature")

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return SGLD(self.temperature).claims.amended(conditions=("exact gradient",))

    def dynamics(self, target: Target) -> Dynamics:
        """D = T I, Q = 0, H = U / T."""
        return SGLD(self.temperature).dynamics(target)

    def init(self, key: np.random.Generator, position: Position, estimator: Estimator) -> HostState:
        """Start a chain at a position."""
        owned = jax.tree.map(lambda leaf: np.array(leaf, copy=True), position)
        return HostState(owned, estimator.init(estimator_key(key, estimator), position))

    def step(self, key: np.random.Generator, state: HostState, step_size: Scalar, estimator: Estimator) -> HostState:
        """Take one step."""
        estimate, state.estate = estimator.estimate(estimator_key(key, estimator), state.estate, state.position)
        scale = float(np.sqrt(2 * self.temperature * step_size))

        def move(leaf: np.ndarray, gradient: jax.typing.ArrayLike) -> np.ndarray:
            noise = key.standard_normal(leaf.shape).astype(leaf.dtype)
            return leaf - float(step_size) * np.asarray(gradient, leaf.dtype) + scale * noise

        state.position = jax.tree.map(move, state.position, estimate.gradient)
        return state


ENTRIES: tuple[Row, ...] = (langevin_row("host-sgld", plain(HostSGLD), targets=FLAT[:4], estimator=HostExact),)
