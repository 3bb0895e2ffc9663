"""Any `torch.optim.Optimizer` as a sampler: its own step, on the gradient of a loss, with draws from a given generator.

What an optimiser holds between two steps (its state, its groups, its attributes) is what the sampler carries; at
another learning rate it is made anew and handed the state. What of the state has the shape of a parameter is part of z.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.torch_groups import divided, half, joined
from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import (
    Leaves,
    Optimiser,
    first_entries,
    parameters_of,
    quiet,
)
from sgmcmc_verification.samplers.adapters.optimisers.torch_reading import Entries
from sgmcmc_verification.samplers.adapters.torch.adapter import ElementwiseMixin, TorchMixin
from sgmcmc_verification.samplers.adapters.torch.common import (
    Batch,
    Change,
    Source,
    TorchState,
    arrays,
    tensor,
    tensors,
)
from sgmcmc_verification.samplers.adapters.torch.crossing import to_array
from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
from sgmcmc_verification.samplers.interface.aliases import Estimator, Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.sampler import Need
from sgmcmc_verification.targets.target import Target


class Memory(NamedTuple):
    """Parameters by groups, the state of each, and the optimiser that made them at a learning rate.

    Attributes:
        groups: the parameters.
        each: the state of each.
        shapes: of the leaves of the position.
        optimizer: that made them; None before the first step.
        rate: its learning rate.
        steps: number of steps that it has taken.
    """

    groups: list[Leaves]
    each: list[dict[str, Foreign]]
    shapes: list[torch.Size]
    optimizer: torch.optim.Optimizer | None = None
    rate: float = 0.0
    steps: int = 0


class Whole(NamedTuple):
    """z: the position, and what the optimiser remembers of each leaf, by its name."""

    position: Position
    memory: dict[str, Tree]


@dataclass(frozen=True, eq=False)
class OptimiserSampler(TorchMixin):
    """A sampler that takes one step of an optimiser, or a turn of them.

    Args:
        target: the structure of a position.
        optimiser: the class, with its options.
        rate_of: step size in time of the differential equation -> learning rate.
        scale: of the loss: that of which the gradient is handed over is `scale` times (U + prior |theta|^2 / 2).
        priors: of each group of parameters: number of axes of a leaf -> second derivative that is added to U.
        claims: what it is held to.
        entries: what it keeps of a parameter.
        returns: number of steps after which their draws come back; 0 if they do not.
        tests: it may compare losses with a draw.
        turn: number of steps of the optimiser in one of the sampler, together as long as its step size.
        renewed: each step is the first one of an optimiser.
    """

    target: Target
    optimiser: Optimiser
    rate_of: Callable[[float], float]
    scale: float
    priors: tuple[Callable[[int], float], ...]
    claims: Claims
    entries: Entries
    returns: int = 0
    tests: bool = False
    turn: int = 1
    renewed: bool = False

    @property
    def needs(self) -> frozenset[Need]:
        """The parts of an estimate that it reads."""
        return frozenset({"gradient", "potential"}) if self.tests else frozenset({"gradient"})

    def step(self, key: np.random.Generator, state: TorchState, step_size: float, estimator: Estimator) -> TorchState:
        """Take the steps of a turn."""
        for _ in range(self.turn):
            state = super().step(key, state, step_size / self.turn, estimator)
        return state

    def _change(self) -> "Change | None":
        return self._prior if any(prior(axes) for prior in self.priors for axes in (1, 2)) else None

    def _prior(self, leaves: list[np.ndarray], centre: list[np.ndarray]) -> tuple[Foreign, list[np.ndarray]]:
        last = [tuple(range(-np.ndim(c), 0)) for c in centre]
        gradient = [self._second_derivative(i, c) * x for i, (x, c) in enumerate(zip(leaves, centre, strict=True))]
        value = sum(0.5 * np.sum(g * x, axis=axes) for g, x, axes in zip(gradient, leaves, last, strict=True))
        return value, gradient

    def _second_derivative(self, number: int, leaf: np.ndarray) -> Foreign:
        """That of each entry of a leaf, or of all."""
        each = [prior(np.ndim(leaf)) for prior in self.priors]
        middle = half(leaf.shape)
        if len(each) < 2 or not middle:
            return each[number % len(each)]
        return np.where(np.arange(leaf.shape[-1]) < middle, *each)

    def _advance(
        self, generator: np.random.Generator, memory: Memory, step_size: float, source: Source | Batch
    ) -> Memory:
        rate = self.rate_of(step_size)
        # draws that come back are those of a generator of its own, the same in all chains
        draws = np.random.default_rng(memory.steps % self.returns) if self.returns else generator
        with quiet(), draws_from(draws):
            optimizer = self._optimizer(memory, rate)
            groups: list[Leaves] = [group["params"] for group in optimizer.param_groups]
            loss = lambda: self.scale * source.potential(self._whole(groups, memory.shapes))
            self.optimiser.step(optimizer, loss)
        parameters = [[p.data for p in group] for group in groups]
        each = [dict(optimizer.state[p]) for group in groups for p in group]
        if self.renewed:
            return Memory(parameters, [{} for _ in each], memory.shapes, steps=memory.steps + 1)
        return Memory(parameters, each, memory.shapes, optimizer, rate, memory.steps + 1)

    def _whole(self, groups: list[Leaves], shapes: list[torch.Size]) -> Leaves:
        return groups[0] if len(self.priors) == 1 else joined(groups, shapes)

    def _optimizer(self, memory: Memory, rate: float) -> torch.optim.Optimizer:
        """The optimiser that goes on from a memory, which is left as it is."""
        if memory.optimizer is not None and memory.rate == rate:
            optimizer = copied(memory.optimizer)
            for p in parameters_of(optimizer):
                p.grad = None
            return optimizer
        groups: list[Leaves] = [[torch.nn.Parameter(x.clone()) for x in group] for group in memory.groups]
        with draws_from(np.random.default_rng(0)):  # what is drawn there, as a seed is, stays as it is
            optimizer = self.optimiser.build(groups, rate)
        for p, kept in zip(parameters_of(optimizer), memory.each, strict=True):
            if kept:
                optimizer.state[p].update(copied(kept))
        return optimizer

    def _fresh(self, leaves: Leaves) -> Memory:
        groups = [leaves] if len(self.priors) == 1 else divided(leaves)
        return Memory(groups, [{} for group in groups for _ in group], [x.shape for x in leaves])

    def _leaves(self, memory: Memory) -> Leaves:
        return self._whole(memory.groups, memory.shapes)

    def unpack(self, state: TorchState) -> Tree:
        """Full variable z of a state."""
        position = self.position(state)
        if not self.entries.remembered:
            return position
        inner: Memory = state.inner
        first = self._first(inner, self.entries.scalars)
        parameters = [p for group in inner.groups for p in group]
        memory: dict[str, Tree] = {}
        for name in self.entries.remembered:
            values = [kept.get(name, made.get(name)) for kept, made in zip(inner.each, first, strict=True)]
            if name in self.entries.scalars:  # of those parameters that have one
                memory[name] = tuple(to_array(value) for value in values if value is not None)
                continue
            filled = [torch.zeros_like(p) if v is None else v for p, v in zip(parameters, values, strict=True)]
            memory[name] = arrays(self.target, self._whole(self._by_groups(inner, filled), inner.shapes))
        return Whole(position, memory)

    def _by_groups(self, memory: Memory, values: list[torch.Tensor]) -> list[Leaves]:
        given = iter(values)
        return [[next(given) for _ in group] for group in memory.groups]

    def _first(self, memory: Memory, names: tuple[str, ...]) -> list[dict[str, Foreign]]:
        if not names:
            return [{} for group in memory.groups for _ in group]
        shapes = tuple(tuple(tuple(x.shape) for x in group) for group in memory.groups)
        return first_entries(self.optimiser, shapes, names)

    def pack(self, key: np.random.Generator, z: Tree, estimator: Estimator) -> TorchState:
        """State with the full variable z."""
        if not self.entries.remembered:
            return self.init(key, z, estimator)
        state = self.init(key, z.position, estimator)
        memory: Memory = state.inner
        each = [copied({**self.entries.others, **made}) for made in self._first(memory, self.entries.made)]
        scalars = self._first(memory, self.entries.scalars)
        for name, tree in z.memory.items():
            if name in self.entries.scalars:
                having = [kept for kept, made in zip(each, scalars, strict=True) if name in made]
                for kept, value in zip(having, tree, strict=True):
                    kept[name] = tensor(value)
                continue
            groups = self._fresh(list(tensors(tree).values())).groups
            for kept, value in zip(each, (x for group in groups for x in group), strict=True):
                kept[name] = value
        state.inner = memory._replace(each=each)
        return state


@dataclass(frozen=True, eq=False)
class ElementwiseSampler(ElementwiseMixin, OptimiserSampler):
    """One of an optimiser that moves each coordinate by itself: many chains at once."""

    def chains(
        self, rng: np.random.Generator, positions: np.ndarray, step_size: float, num_steps: int, estimator: Estimator
    ) -> np.ndarray:
        """End positions (N, d), as of the mixin, after so many turns."""
        return super().chains(rng, positions, step_size / self.turn, num_steps * self.turn, estimator)
