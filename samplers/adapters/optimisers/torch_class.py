"""Any `torch.optim.Optimizer` as a sampler: its own step, on the gradient of a loss, with draws from a given generator.

What an optimiser holds between two steps (its state, its groups, its attributes) is what the sampler carries; at
another learning rate it is made anew and handed the state. What of the state has the shape of a parameter is part of z.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import Leaves, Optimiser, parameters_of, quiet
from sgmcmc_verification.samplers.adapters.optimisers.torch_reading import Entries
from sgmcmc_verification.samplers.adapters.torch.adapter import ElementwiseMixin, TorchMixin
from sgmcmc_verification.samplers.adapters.torch.common import Batch, Change, Source, TorchState, arrays, tensors
from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.targets.target import Target


class Memory(NamedTuple):
    """Leaves of the position, the state of each of them, and the optimiser that made them at a learning rate."""

    leaves: Leaves
    each: list[dict[str, Foreign]]
    optimizer: torch.optim.Optimizer | None = None
    rate: float = 0.0


class Whole(NamedTuple):
    """z: the position, and what the optimiser remembers of each leaf, by its name."""

    position: Position
    memory: dict[str, Tree]


@dataclass(frozen=True, eq=False)
class OptimiserSampler(TorchMixin):
    """A sampler that takes one step of an optimiser.

    Args:
        target: the structure of a position.
        optimiser: the class, with its options.
        rate_of: step size in time of the differential equation -> learning rate.
        scale: of the loss: that of which the gradient is handed over is `scale` times (U + prior |theta|^2 / 2).
        prior: second derivative that is added to U.
        claims: what it is held to.
        entries: what it keeps of a parameter.
        frozen: all steps draw the same numbers.
    """

    target: Target
    optimiser: Optimiser
    rate_of: Callable[[float], float]
    scale: float
    prior: float
    claims: Claims
    entries: Entries
    frozen: bool = False

    needs = frozenset({"gradient"})

    def _change(self) -> "Change | None":
        return self._prior if self.prior else None

    def _prior(self, leaves: list[np.ndarray], centre: list[np.ndarray]) -> tuple[Foreign, list[np.ndarray]]:
        last = [tuple(range(-np.ndim(c), 0)) for c in centre]
        value = sum(0.5 * self.prior * np.sum(x**2, axis=axes) for x, axes in zip(leaves, last, strict=True))
        return value, [self.prior * x for x in leaves]

    def _advance(
        self, generator: np.random.Generator, memory: Memory, step_size: float, source: Source | Batch
    ) -> Memory:
        rate = self.rate_of(step_size)
        with quiet(), draws_from(np.random.default_rng(0) if self.frozen else generator):
            optimizer = self._optimizer(memory, rate)
            parameters = parameters_of(optimizer)
            self.optimiser.step(optimizer, lambda: self.scale * source.potential(parameters))
        return Memory([p.data for p in parameters], [dict(optimizer.state[p]) for p in parameters], optimizer, rate)

    def _optimizer(self, memory: Memory, rate: float) -> torch.optim.Optimizer:
        """The optimiser that goes on from a memory, which is left as it is."""
        if memory.optimizer is not None and memory.rate == rate:
            optimizer = copied(memory.optimizer)
            for p in parameters_of(optimizer):
                p.grad = None
            return optimizer
        parameters: Leaves = [torch.nn.Parameter(x.clone()) for x in memory.leaves]
        optimizer = self.optimiser.build(parameters, rate)
        for p, kept in zip(parameters, memory.each, strict=True):
            if kept:
                optimizer.state[p].update(copied(kept))
        return optimizer

    def _fresh(self, leaves: Leaves) -> Memory:
        return Memory(leaves, [{} for _ in leaves])

    def _leaves(self, memory: Memory) -> Leaves:
        return memory.leaves

    def unpack(self, state: TorchState) -> Tree:
        """Full variable z of a state."""
        position = self.position(state)
        if not self.entries.remembered:
            return position
        inner: Memory = state.inner

        def value(name: str, kept: dict[str, Foreign], i: int) -> torch.Tensor:
            if kept.get(name) is not None:
                return kept[name]
            if name in self.entries.scalars:
                return self._first(inner.leaves, self.entries.scalars)[i][name]
            return torch.zeros_like(inner.leaves[i])

        memory = {
            name: arrays(self.target, [value(name, kept, i) for i, kept in enumerate(inner.each)])
            for name in self.entries.remembered
        }
        return Whole(position, memory)

    def _first(self, leaves: Leaves, names: tuple[str, ...]) -> list[dict[str, Foreign]]:
        return first_entries(self.optimiser, tuple(tuple(x.shape) for x in leaves), names)

    def pack(self, key: np.random.Generator, z: Tree, estimator: Estimator) -> TorchState:
        """State with the full variable z."""
        if not self.entries.remembered:
            return self.init(key, z, estimator)
        state = self.init(key, z.position, estimator)
        memory: Memory = state.inner
        entries = {name: list(tensors(tree).values()) for name, tree in z.memory.items()}
        each = [
            {**copied({**self.entries.others, **made}), **{name: leaves[i] for name, leaves in entries.items()}}
            for i, made in enumerate(self._first(memory.leaves, self.entries.made))
        ]
        state.inner = memory._replace(each=each)
        return state


@dataclass(frozen=True, eq=False)
class ElementwiseSampler(ElementwiseMixin, OptimiserSampler):
    """One of an optimiser that moves each coordinate by itself: many chains at once."""


@functools.lru_cache(maxsize=64)
def first_entries(
    optimiser: Optimiser, shapes: tuple[tuple[int, ...], ...], names: tuple[str, ...]
) -> list[dict[str, Foreign]]:
    """Some entries of the state of each parameter, as a first step makes them."""
    with quiet(), draws_from(np.random.default_rng(0)):
        parameters: Leaves = [torch.nn.Parameter(torch.zeros(shape, dtype=torch.float64)) for shape in shapes]
        optimizer = optimiser.build(parameters, 1e-3)
        optimiser.step(optimizer, lambda: sum((0.0 * p.sum() for p in parameters), torch.zeros(())))
    return [{name: optimizer.state[p][name] for name in names if name in optimizer.state[p]} for p in parameters]
