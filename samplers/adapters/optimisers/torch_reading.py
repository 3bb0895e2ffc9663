"""Readings of an optimiser of torch, at chosen gradients and draws: its moves, memory, schedules and generators."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.reading import GRADIENT, POSITION, Counts, Draw, Schedule
from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import Optimiser, parameters_of, quiet, set_rate
from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
from sgmcmc_verification.samplers.interface.aliases import Options
from sgmcmc_verification.samplers.interface.copied import copied

MANY, FEW = 50, 3
"""Steps after which what counts steps is at a usual value, and in which it is seen whether a number is read."""


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
