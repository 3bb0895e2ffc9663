"""Replica exchange of two Langevin chains: the hot one crosses barriers, the cold one is the sample."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


class Replicas(NamedTuple):
    """Positions of both chains; that of the cold one is what is sampled."""

    position: np.ndarray
    hot: np.ndarray


@dataclass(frozen=True)
class ReplicaPair:
    """Two replicas at the temperatures 1 and `hot_temperature`, with a swap attempted in every step."""

    hot_temperature: float = 2.0

    backend = "host"

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> Replicas:
        """Both replicas start at the same place."""
        del rng, estimator
        return Replicas(np.array(position), np.array(position))

    def step(
        self, rng: np.random.Generator, state: Replicas, step_size: float, estimator: Estimator
    ) -> Replicas:
        """Move each replica, then try to exchange them."""
        cold, hot = np.array(state.position), np.array(state.hot)
        for x, temperature in ((cold, 1.0), (hot, self.hot_temperature)):
            gradient = np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)
            x += np.sqrt(2 * step_size * temperature) * rng.standard_normal(x.shape) - step_size * gradient
        u_cold = estimator.estimate(estimator_key(rng, estimator), (), cold)[0].potential
        u_hot = estimator.estimate(estimator_key(rng, estimator), (), hot)[0].potential
        if np.log(rng.random()) < (1 - 1 / self.hot_temperature) * (u_cold - u_hot):
            cold[...], hot[...] = hot, cold
        return Replicas(cold, hot)
