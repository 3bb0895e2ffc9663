"""Random-walk Metropolis whose scales follow the chain, for coordinates of unknown and different spread."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


class WalkState(NamedTuple):
    """Position and running second moment of each coordinate."""

    position: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class AdaptiveWalk:
    """Proposals x + sqrt(2 h) s xi, with s^2 = floor + running average of x^2.

    Args:
        memory: of the average, per step.
        floor: added to the average, so that no coordinate gets stuck.
    """

    memory: float = 0.9
    floor: float = 1.0

    backend = "host"

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> WalkState:
        """The average starts from the first position."""
        del rng, estimator
        x = np.asarray(position)
        return WalkState(x, x**2)

    def step(
        self, rng: np.random.Generator, state: WalkState, step_size: float, estimator: Estimator
    ) -> WalkState:
        """One proposal, and an update of the scales."""
        x = np.asarray(state.position)
        scale = np.sqrt(self.floor + state.second)
        y = x + np.sqrt(2 * step_size) * scale * rng.standard_normal(x.shape)
        # given the scales the proposal is symmetric
        before = estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential
        after = estimator.estimate(estimator_key(rng, estimator), (), y)[0].potential
        if np.log(rng.random()) < before - after:
            x = y
        second = self.memory * state.second + (1 - self.memory) * x**2
        return WalkState(x, second)
