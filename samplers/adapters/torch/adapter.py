"""Shared parts of the adapters of torch's optimisers: chains that go on from what one remembers, and many at once.

torch itself is imported where a step needs it, so that the rows can be listed without it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position
from sgmcmc_verification.samplers.interface.from_step import PositionVariable
from sgmcmc_verification.targets.target import Target

if TYPE_CHECKING:
    import torch

    from sgmcmc_verification.samplers.adapters.torch.common import Change, TorchState


class TorchMixin(PositionVariable):
    """init, step, position, unpack and pack of a sampler that takes one step of an optimiser, made anew for each.

    `_advance(generator, memory, step_size, source)` returns the memory of an optimiser after one step of the library
    from another one. As a rule a memory is the leaves of the position.
    """

    target: Target
    _advance: Callable[..., Foreign]

    backend = "host"

    def _fresh(self, leaves: list["torch.Tensor"]) -> Foreign:
        """The memory of an optimiser that has made no step."""
        return leaves

    def _leaves(self, memory: Foreign) -> list["torch.Tensor"]:
        """The leaves of the position."""
        return memory

    def _change(self) -> "Change | None":
        """Function to add to U~; None for nothing."""
        return None

    def init(self, key: np.random.Generator, position: Position, estimator: Estimator) -> "TorchState":
        """Start a chain at a position."""
        from sgmcmc_verification.samplers.adapters.torch.common import TorchState, tensors

        estate = estimator.init(estimator_key(key, estimator), position)
        return TorchState(self._fresh(list(tensors(position).values())), estate)

    def step(
        self, key: np.random.Generator, state: "TorchState", step_size: float, estimator: Estimator
    ) -> "TorchState":
        """Take one step."""
        from sgmcmc_verification.samplers.adapters.torch.common import Source as Gradient
        from sgmcmc_verification.samplers.adapters.torch.common import TorchState

        source = Gradient(self.target, estimator, key, state.estate, self._change())
        return TorchState(self._advance(key, state.inner, float(step_size), source), source.estate)

    def position(self, state: "TorchState") -> Position:
        """Position of a state."""
        from sgmcmc_verification.samplers.adapters.torch.common import arrays

        return arrays(self.target, self._leaves(state.inner))


class ElementwiseMixin(TorchMixin):
    """Chains at once, for optimisers that act on each coordinate alone."""

    def chains(
        self, rng: np.random.Generator, positions: np.ndarray, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End positions (N, d) of N independent chains: the library's own step on one parameter of shape (N, d).

        Args:
            rng: `numpy.random.Generator`, of everything random.
            positions: (N, d) starts.
            step_size: as in `step`.
            num_steps: number of steps.
            estimator: exact, or one that JAX can vectorise.
        """
        from sgmcmc_verification.samplers.adapters.torch.common import Batch, tensor

        source = Batch(self.target, estimator, rng, len(positions), self._change())
        memory = self._fresh([tensor(np.asarray(positions, np.float64))])
        for _ in range(num_steps):
            memory = self._advance(rng, memory, float(step_size), source)
        return self._leaves(memory)[0].numpy().copy()
