"""SGLD that draws its normal numbers in bulk: one call of the generator for many steps."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


@dataclass
class Pool:
    """Rows of normal numbers, handed out in order."""

    rows: np.ndarray
    used: int = 0

    def take(self) -> np.ndarray:
        """The next row."""
        row = self.rows[self.used % len(self.rows)]
        self.used += 1
        return row


@dataclass
class PooledLangevin:
    """SGLD with a pool of noise for each shape of a position.

    Args:
        rows: size of a pool.
    """

    rows: int = 256

    backend = "host"

    def __post_init__(self) -> None:
        self._pools: dict[tuple[int, ...], Pool] = {}

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> dict[str, np.ndarray]:
        """The state is the position."""
        del rng, estimator
        return {"position": np.array(position)}

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if shape not in self._pools:
            self._pools[shape] = Pool(rng.standard_normal((self.rows, *shape)))
        return self._pools[shape].take()

    def step(
        self, rng: np.random.Generator, state: dict[str, np.ndarray], step_size: float, estimator: Estimator
    ) -> dict[str, np.ndarray]:
        """x' = x - h grad U(x) + sqrt(2 h) xi."""
        x = np.asarray(state["position"])
        gradient = np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)
        return {"position": x - step_size * gradient + np.sqrt(2 * step_size) * self._noise(rng, x.shape)}
