"""Any `torch.optim.Optimizer` as a sampler: its own step, on the gradient of a loss, with draws from a given generator.

What an optimiser holds between two steps (its state, its groups, its attributes) is what the sampler carries; at
another learning rate it is made anew and handed the state. What of the state has the shape of a parameter is part of z.
"""

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.reading import GRADIENT, POSITION, Counts, Draw, Schedule
from sgmcmc_verification.samplers.adapters.optimisers.refusal import Refused
from sgmcmc_verification.samplers.adapters.torch.adapter import ElementwiseMixin, TorchMixin
from sgmcmc_verification.samplers.adapters.torch.common import Batch, Change, Source, TorchState, arrays, tensors
from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
from sgmcmc_verification.samplers.interface.aliases import Estimator, Options, Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.targets.target import Target

Leaves = list[torch.Tensor]
MANY, FEW = 50, 3
"""Steps after which what counts steps is at a usual value, and in which it is seen whether a number is read."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings, and torch's own generator as it was: a constructor may draw."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True, eq=False)
class Optimiser:
    """A class of optimisers with its options.

    Attributes:
        kind: the class.
        rate: name of the learning rate among the arguments of its constructor.
        options: the other arguments.
        scheduled: the learning rate is half of that which the constructor was given, set as by a scheduler.
    """

    kind: type[torch.optim.Optimizer]
    rate: str
    options: Options
    scheduled: bool = False

    def build(self, parameters: Leaves, rate: float) -> torch.optim.Optimizer:
        """A new optimiser of parameters."""
        if not self.scheduled:
            return self.kind(parameters, **{self.rate: rate}, **self.options)
        optimizer = self.kind(parameters, **{self.rate: 2 * rate}, **self.options)
        set_rate(optimizer, self.rate, rate)
        return optimizer

    def step(self, optimizer: Foreign, loss: Callable[[], torch.Tensor]) -> None:
        """Take a step; a closure, where one is needed, returns the loss with its gradient taken, or without."""
        if not needs_closure(self.kind):
            loss().backward()
            optimizer.step()
            return

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            value = loss()
            if not differentiates(self.kind):
                value.backward()
            return value

        optimizer.step(closure)


@functools.lru_cache(maxsize=64)
def needs_closure(kind: type[torch.optim.Optimizer]) -> bool:
    """True if `step` cannot be called without one."""
    parameters = list(inspect.signature(kind.step).parameters.values())[1:]
    return any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)


@functools.lru_cache(maxsize=64)
def differentiates(kind: type[torch.optim.Optimizer]) -> bool:
    """True if `step` itself takes the gradient of what the closure returns."""
    try:
        return ".backward()" in inspect.getsource(kind.step)
    except (OSError, TypeError):
        return False


def parameters_of(optimizer: torch.optim.Optimizer) -> Leaves:
    """The parameters of all groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]


class Scripted:
    """A generator of which the number of a draw decides its value."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.count = draw, 0

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """The next draw."""
        self.count += 1
        return np.broadcast_to(np.asarray(self.draw(self.count - 1), float), shape)


@dataclass(frozen=True, eq=False)
class TorchProbe:
    """A `Probe` of a class of optimisers."""

    kind: type[torch.optim.Optimizer]
    rate: str

    def start(self, rate: float, options: Options) -> torch.optim.Optimizer:
        """A new optimiser of one parameter."""
        with quiet(), draws_from(Scripted(lambda _: 0.0)):  # pyright: ignore[reportArgumentType]
            parameter = torch.nn.Parameter(torch.zeros(6, dtype=torch.float64))
            return Optimiser(self.kind, self.rate, options).build([parameter], rate)

    def copy(self, memory: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """The optimiser once more."""
        return copied(memory)

    def step(
        self, memory: torch.optim.Optimizer, position: np.ndarray, gradient: np.ndarray, draw: Draw
    ) -> tuple[np.ndarray, torch.optim.Optimizer, Counts]:
        """Change the optimiser by a step."""
        (parameter,) = parameters_of(memory)
        script, slope, asked = Scripted(draw), torch.from_numpy(gradient), []

        def loss() -> torch.Tensor:
            asked.append(1)
            return (slope * parameter).sum()

        with warnings.catch_warnings(), draws_from(script):  # pyright: ignore[reportArgumentType]
            warnings.simplefilter("ignore")
            parameter.data.copy_(torch.from_numpy(position))
            parameter.grad = None
            Optimiser(self.kind, self.rate, {}).step(memory, loss)
        return parameter.detach().numpy().copy(), memory, Counts(script.count, len(asked))


class Entries(NamedTuple):
    """Entries of the state of a parameter.

    Attributes:
        remembered: names of those that steps change, each in its own way, and that later positions depend on.
        made: names of the others of its shape, which a first step makes: constants, and room for what is worked out.
        others: at values of an optimiser that has made many steps.
        scalars: names of those that are remembered and have another shape than the parameter.
    """

    remembered: tuple[str, ...]
    made: tuple[str, ...]
    others: Options
    scalars: tuple[str, ...] = ()


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


def entries_of(probe: TorchProbe, rate: float, options: Options) -> Entries:
    """Entries that an optimiser keeps of a parameter."""
    memory, other = probe.start(rate, options), probe.start(rate, options)
    probe.step(other, POSITION + 0.3, -1.7 * GRADIENT, lambda _: 1.0)
    first = copied(_entries(other))
    for _ in range(MANY):
        probe.step(memory, POSITION, GRADIENT, lambda _: 0.0)
    for _ in range(MANY - 1):
        probe.step(other, POSITION + 0.3, -1.7 * GRADIENT, lambda _: 1.0)
    entries, shape = _entries(memory), parameters_of(memory)[0].shape
    numbers = [n for n, v in entries.items() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    shaped = [name for name in numbers if entries[name].shape == shape]
    differs = lambda name, those: name not in those or not torch.equal(entries[name], those[name])
    changing = [name for name in shaped if differs(name, first)]
    # what counts steps is the same after as many of them, whatever they were
    changing += [name for name in numbers if name not in shaped and differs(name, _entries(other))]
    remembered = tuple(name for name in changing if _is_read(probe, memory, name))
    made = tuple(name for name in shaped if name not in remembered)
    others = {name: value for name, value in entries.items() if name not in (*remembered, *made)}
    return Entries(remembered, made, others, tuple(name for name in remembered if name not in shaped))


def _entries(optimizer: torch.optim.Optimizer) -> dict[str, Foreign]:
    return optimizer.state[parameters_of(optimizer)[0]]


def _is_read(probe: TorchProbe, memory: torch.optim.Optimizer, name: str) -> bool:
    """True if a position after some steps depends on an entry."""
    ends = []
    for shift in (0.0, 1.0):
        once = copied(memory)
        _entries(once)[name].add_(shift)
        ends.append([probe.step(once, POSITION, GRADIENT, lambda _: 1.0)[0] for _ in range(FEW)])
    return not np.array_equal(*ends)


def treats_alike(probe: TorchProbe, rate: float, options: Options) -> bool:
    """True if a step on coordinates in another order is that step in that order."""
    ends = [
        probe.step(probe.start(rate, options), np.array(POSITION[order]), np.array(GRADIENT[order]), lambda _: 1.0)[0]
        for order in (slice(None), slice(None, None, -1))
    ]
    return bool(np.allclose(ends[0], ends[1][::-1], rtol=1e-9, atol=0.0))


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


def reseeds(probe: TorchProbe, rate: float, options: Options) -> bool:
    """True if a second step draws the numbers of the first one, from a generator that has gone on in between."""
    with quiet():
        memory = probe.start(rate, options)
        moves = []
        for _ in range(3):
            torch.rand(1)
            once = copied(memory)
            (parameter,) = parameters_of(once)
            step = lambda once=once, p=parameter: Optimiser(probe.kind, probe.rate, {}).step(
                once, lambda: 0.0 * p.sum()
            )
            step()
            moves.append(parameter.detach().numpy().copy())
            before = _streams(once)
            step()
            if any(not torch.equal(a, b) for a, b in zip(before, _streams(once), strict=True)):
                return False  # a generator of its own goes on from step to step
    return bool(moves[0].any()) and all(np.array_equal(moves[0], move) for move in moves)


def _streams(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """States of the generators that an optimiser holds."""
    held = [*vars(optimizer).values(), *(value for group in optimizer.param_groups for value in group.values())]
    return [value.get_state() for value in held if isinstance(value, torch.Generator)]


def schedule_of(probe: TorchProbe, rate: float, options: Options) -> Schedule:
    """Effect of a learning rate that is set in the groups, beside that of one that is given to the constructor."""
    ends = []
    for first, later in ((rate, rate / 2), (rate / 2, rate / 2), (rate, rate)):
        memory = probe.start(first, options)
        set_rate(memory, probe.rate, later)
        ends.append(probe.step(memory, POSITION, GRADIENT, lambda _: 1.0)[0])
    changed, as_if_given, unchanged = ends
    same = lambda a, b: bool(np.allclose(a, b, rtol=1e-9, atol=0.0))
    if same(changed, as_if_given):
        return "followed"
    return "ignored" if same(changed, unchanged) else "in part"


def set_rate(optimizer: torch.optim.Optimizer, name: str, rate: float) -> None:
    """Set the learning rate of all groups that have one, as schedulers do."""
    for group in optimizer.param_groups:
        if name in group:
            group[name] = rate


def check_class(reference: str, value: Foreign) -> type[torch.optim.Optimizer]:
    """The class itself. Raises Refused if it is none of optimisers."""
    if not (isinstance(value, type) and issubclass(value, torch.optim.Optimizer)):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise Refused(f"{reference}: {what} is no subclass of torch.optim.Optimizer; name the class itself")
    return value
