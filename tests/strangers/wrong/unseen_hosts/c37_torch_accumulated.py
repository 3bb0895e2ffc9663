"""SGLD in torch with gradient accumulation, for minibatches that are larger than the memory."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


class Accumulated(NamedTuple):
    """Position, the gradient that `.grad` holds, and the number of micro batches in it."""

    position: np.ndarray
    gradient: np.ndarray
    micro: int


@dataclass(frozen=True)
class AccumulatedSGLD:
    """SGLD whose gradient is gathered over `accumulation` micro batches."""

    accumulation: int = 4

    backend = "host"

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> Accumulated:
        """An empty gradient."""
        del rng, estimator
        return Accumulated(np.array(position), np.zeros_like(np.asarray(position)), 0)

    def step(
        self, rng: np.random.Generator, state: Accumulated, step_size: float, estimator: Estimator
    ) -> Accumulated:
        """Backward of one micro batch, a step of the optimiser, and the noise."""
        parameter = torch.nn.Parameter(torch.from_numpy(np.array(state.position)))
        parameter.grad = torch.from_numpy(np.array(state.gradient))
        optimizer = torch.optim.SGD([parameter], lr=float(step_size))

        estimate = estimator.estimate(estimator_key(rng, estimator), (), np.asarray(state.position))[0]
        slope = torch.from_numpy(np.array(estimate.gradient)).to(parameter.dtype)
        loss = (parameter * slope).sum()  # a loss with the gradient of the potential
        (loss / self.accumulation).backward()
        optimizer.step()
        with torch.no_grad():
            noise = torch.from_numpy(np.asarray(rng.standard_normal(parameter.shape)))
            parameter.add_(noise.to(parameter.dtype), alpha=(2 * float(step_size)) ** 0.5)
        micro = (state.micro + 1) % self.accumulation
        if micro == 0:
            optimizer.zero_grad(set_to_none=False)
        return Accumulated(parameter.detach().numpy().copy(), parameter.grad.numpy().copy(), micro)
