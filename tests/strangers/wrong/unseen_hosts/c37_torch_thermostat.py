"""The stochastic gradient Nose-Hoover thermostat in torch."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


class Thermostat(NamedTuple):
    """Position, momentum, and the friction that the thermostat has found."""

    position: np.ndarray
    momentum: np.ndarray
    friction: np.ndarray


@dataclass(frozen=True)
class SGNHT:
    """SGNHT: the friction grows while the mean kinetic energy is too high, and falls while it is too low.

    Args:
        diffusion: A, half of the variance of the noise in the momentum per unit of time.
    """

    diffusion: float = 1.0

    backend = "host"

    def _normal(self, rng: np.random.Generator, like: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        return torch.randn(like.shape, generator=generator, dtype=like.dtype)

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> Thermostat:
        """A momentum at temperature 1, and the friction that balances the noise."""
        del estimator
        x = np.array(position)
        momentum = self._normal(rng, torch.from_numpy(x)).numpy()
        return Thermostat(x, momentum, np.array(self.diffusion, x.dtype))

    def step(
        self, rng: np.random.Generator, state: Thermostat, step_size: float, estimator: Estimator
    ) -> Thermostat:
        """One step of Euler's scheme, the position with the new momentum."""
        h = float(step_size)
        x, r, xi = (torch.from_numpy(np.array(part)) for part in state)
        estimate = estimator.estimate(estimator_key(rng, estimator), (), np.asarray(state.position))[0]
        gradient = torch.from_numpy(np.array(estimate.gradient)).to(x.dtype)
        r = r - h * gradient - h * xi * r + (2 * self.diffusion * h) ** 0.5 * self._normal(rng, r)
        x = x + h * r
        kinetic = r.square().sum() / len(r)
        xi = xi + h * (kinetic - 1)
        return Thermostat(x.numpy(), r.numpy(), xi.numpy())
