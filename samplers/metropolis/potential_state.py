"""The state of kernels that read the potential alone, and what they have in common."""

from typing import NamedTuple

import jax

from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Position
from sgmcmc_verification.samplers.underdamped.hmc import ExactMixin, potential_of


class PotentialState(NamedTuple):
    """Position, its potential (a cache), and the estimator's own state."""

    position: Position
    potential: jax.Array
    estate: EstimatorState


class PotentialMixin(ExactMixin):
    """init and claims of an exact kernel that reads the potential alone, with z = the position."""

    conditions = ("exact potential",)
    needs = frozenset({"potential"})

    def init(self, key: jax.Array, position: Position, estimator: Estimator) -> PotentialState:
        """Start a chain at a position."""
        init_key, estimate_key = jax.random.split(key)
        return self._at(estimate_key, position, estimator.init(init_key, position), estimator)

    def _at(self, key: jax.Array, position: Position, estate: EstimatorState, estimator: Estimator) -> PotentialState:
        """The state at a position."""
        estimate, estate = estimator.estimate(key, estate, position)
        return PotentialState(position, potential_of(estimate), estate)
