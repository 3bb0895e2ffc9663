"""Block-coordinate Langevin dynamics for long parameter vectors: each step spends its gradient on one block."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


class BlockState(NamedTuple):
    """Position and the block whose turn it is."""

    position: np.ndarray
    block: int


@dataclass(frozen=True)
class RotatingBlocks:
    """SGLD on blocks of `block_size` consecutive coordinates in turn."""

    block_size: int = 16

    backend = "host"

    def init(self, rng: np.random.Generator, position: np.ndarray, estimator: Estimator) -> BlockState:
        """Begin with the first block."""
        del rng, estimator
        return BlockState(np.array(position), 0)

    def step(
        self, rng: np.random.Generator, state: BlockState, step_size: float, estimator: Estimator
    ) -> BlockState:
        """A Langevin step with the gradient of one block."""
        x = np.asarray(state.position)
        gradient = np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient).ravel()
        number = -(-x.size // self.block_size)
        start = state.block * self.block_size
        here = slice(start, start + self.block_size)

        moved = x.flatten()
        moved[here] -= step_size * gradient[here]
        moved += np.sqrt(2 * step_size) * rng.standard_normal(x.size)
        return BlockState(moved.reshape(x.shape), (state.block + 1) % number)
