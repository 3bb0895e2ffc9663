"""Random-walk Metropolis that keeps the energy of its position, at one evaluation of the potential per step."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


class Cached(NamedTuple):
    """Position and its energy."""

    position: np.ndarray
    energy: float


@dataclass(frozen=True)
class CachedMetropolis:
    """Metropolis' algorithm with normal proposals of variance 2 h."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def _energy(self, rng: np.random.Generator, x: np.ndarray, estimator: Estimator) -> float:
        return estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> Cached:
        """Evaluate the first energy."""
        x = np.array(position)
        return Cached(x, self._energy(rng, x, estimator))

    def step(self, rng: np.random.Generator, state: Cached, step_size: float, estimator: Estimator) -> Cached:
        """Propose, and accept or reject."""
        x = np.asarray(state.position)
        proposal = x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        energy = self._energy(rng, proposal, estimator)
        accepted = np.log(rng.random()) < state.energy - energy
        return state._replace(position=proposal if accepted else x)
