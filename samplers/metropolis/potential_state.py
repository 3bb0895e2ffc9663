"""The state of kernels that read the potential alone, and what they have in common."""

from typing import NamedTuple

import jax

from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source, StationaryMoments
from sgmcmc_verification.samplers.interface.from_step import PositionMixin
from sgmcmc_verification.samplers.underdamped.hmc import potential_of


class PotentialState(NamedTuple):
    """Position, its potential (a cache), and the estimator's own state."""

    position: Position
    potential: jax.Array
    estate: EstimatorState


class PotentialMixin(PositionMixin):
    """init and claims of an exact kernel that reads the potential alone, with z = the position."""

    temperature: float

    backend = "jax"
    needs = frozenset({"potential"})

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PotentialState:
        """Start a chain at a position."""
        init_key, estimate_key = jax.random.split(key)
        return self._at(estimate_key, position, estimator.init(init_key, position), estimator)

    def _at(self, key: jax.Array, position: Position, estate: EstimatorState, estimator: Estimator) -> PotentialState:
        """The state at a position."""
        estimate, estate = estimator.estimate(key, estate, position)
        return PotentialState(position, potential_of(estimate), estate)

    def _claims(self, source: Source) -> Claims:
        """Claims of the exact law at the temperature."""
        T = self.temperature
        return Claims(
            source,
            ExactLaw(temperature=T),
            StationaryMoments(lambda h, curvature: {"position": T / curvature}),
            conditions=("exact potential",),
        )
