"""Readings of an optimiser of torch, at chosen gradients and draws: its moves, memory, schedules and generators."""

import dataclasses
import inspect
import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from sgmcmc_verification.samplers.adapters.common import Foreign
from sgmcmc_verification.samplers.adapters.optimisers.convention import DATA, SPREADS, TEMPERATURES, Convention
from sgmcmc_verification.samplers.adapters.optimisers.reading import (
    GRADIENT,
    POSITION,
    ROWS,
    SAME,
    Counts,
    Draw,
    Idle,
    Schedule,
    effect_of_schedule,
    filled,
    read,
    takes,
)
from sgmcmc_verification.samplers.adapters.optimisers.torch_optimiser import (
    Leaves,
    Optimiser,
    needs_closure,
    parameters_of,
    quiet,
    scale_rate,
)
from sgmcmc_verification.samplers.adapters.torch.noise_tape import draws_from
from sgmcmc_verification.samplers.interface.aliases import Options
from sgmcmc_verification.samplers.interface.copied import copied

MANY, FEW = 50, 3
"""Steps after which what counts steps is at a usual value, and in which it is seen whether a number is read."""
COME_BACK = 4_000
"""Steps within which draws are looked for that come back: an epoch of 60,000 data by minibatches of 16 has 3,750."""


class Scripted:
    """A generator of which the number of a draw decides its value, one for each entry of a parameter of a shape.

    Draws of other laws are counted, and are their medians or nearly so: a coin or a test goes one way.
    """

    uniforms_are_numbers = True

    def __init__(self, draw: Draw, entries: tuple[int, ...] = POSITION.shape) -> None:
        self.draw, self.entries, self.count = draw, entries, 0
        self.others, self.joint = 0, False

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """The next draw."""
        self.count += 1
        return filled(self.draw(self.count - 1), self.entries, shape)

    def _other(self, value: Foreign, shape: tuple[int, ...]) -> np.ndarray:
        self.others += 1
        self.joint = self.joint or math.prod(shape) != math.prod(self.entries)
        return np.broadcast_to(value, shape)

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> np.ndarray:
        """The middle."""
        return self._other((low + high) / 2, shape)

    def binomial(self, number: int, chance: Foreign, shape: tuple[int, ...]) -> np.ndarray:
        """The likelier side of a coin."""
        return self._other(number * (np.asarray(chance) >= 0.5), shape)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
        """The one in the middle."""
        return self._other((low + high) // 2, shape)

    def permutation(self, count: int) -> np.ndarray:
        """Numbers in their order."""
        return self._other(np.arange(count), (count,))

    def standard_exponential(self, shape: tuple[int, ...]) -> np.ndarray:
        """The median."""
        return self._other(np.log(2.0), shape)

    def standard_gamma(self, mean: float, shape: tuple[int, ...]) -> np.ndarray:
        """The mean."""
        return self._other(mean, shape)


@dataclass(frozen=True, eq=False)
class TorchProbe:
    """A `Probe` of a class of optimisers.

    Attributes:
        kind: the class.
        rate: name of the learning rate.
        burn_in: name of the option for the steps of a burn-in; empty if there is none.
        shape: of the parameter.
    """

    kind: type[torch.optim.Optimizer]
    rate: str
    burn_in: str = ""
    shape: tuple[int, ...] = POSITION.shape

    def optimiser(self, options: Options) -> Optimiser:
        """The class with some options."""
        return Optimiser(self.kind, self.rate, options, burn_in=self.burn_in)

    def start(self, rate: float, options: Options) -> torch.optim.Optimizer:
        """A new optimiser of one parameter."""
        with quiet(), draws_from(Scripted(lambda _: 0.0)):  # pyright: ignore[reportArgumentType]
            return self.optimiser(options).build([[_parameter(np.zeros(self.shape))]], rate)

    def of_matrices(self) -> "TorchProbe":
        """That of a matrix."""
        return dataclasses.replace(self, shape=ROWS)

    def copy(self, memory: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """The optimiser once more."""
        return copied(memory)

    def step(
        self, memory: torch.optim.Optimizer, position: np.ndarray, gradient: np.ndarray, draw: Draw
    ) -> tuple[np.ndarray, torch.optim.Optimizer, Counts]:
        """Change the optimiser by a step."""
        (parameter,) = parameters_of(memory)
        script, slope, asked = Scripted(draw, self.shape), torch.from_numpy(gradient).reshape(self.shape), []

        def loss() -> torch.Tensor:
            asked.append(1)
            return (slope * parameter).sum()

        with warnings.catch_warnings(), draws_from(script):  # pyright: ignore[reportArgumentType]
            warnings.simplefilter("ignore")
            parameter.data.copy_(torch.from_numpy(position).reshape(self.shape))
            parameter.grad = None
            self.optimiser({}).step(memory, loss)
        end = parameter.detach().numpy().flatten()  # a copy: later steps change the parameter in place
        return end, memory, Counts(script.count, len(asked), script.others, script.joint)


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


def entries_of(probe: TorchProbe, rate: float, options: Options, turn: int = 1) -> Entries:
    """Entries that an optimiser keeps of a parameter, the others of them after whole turns of steps."""
    many = -(-MANY // turn) * turn
    memory, other = probe.start(rate, options), probe.start(rate, options)
    probe.step(other, POSITION + 0.3, -1.7 * GRADIENT, lambda _: 1.0)
    first = copied(_entries(other))
    for _ in range(many):
        probe.step(memory, POSITION, GRADIENT, lambda _: 0.0)
    for _ in range(many - 1):
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


def moves_matrices_as_vectors(probe: TorchProbe, rate: float, options: Options) -> bool:
    """True if steps move the entries of a matrix as those of a vector."""
    ends = [
        _walk(probe, probe.optimiser(options).build([[_parameter(POSITION.reshape(shape))]], rate))
        for shape in (POSITION.shape, ROWS)
    ]
    return np.allclose(*ends, rtol=1e-9, atol=0.0)


def moves_apart(probe: TorchProbe, optimiser: Optimiser, rate: float) -> bool:
    """True if each of two groups of parameters moves as it does alone; also where groups are refused."""
    alone = dataclasses.replace(optimiser, options={**optimiser.options, **optimiser.second})
    new = lambda: [_parameter(POSITION)]
    try:
        both = _walk(probe, optimiser.build([new(), new()], rate))
    except Exception:
        return True
    each = [_walk(probe, optimiser.build([new()], rate)), _walk(probe, alone.build([new()], rate / 2))]
    return np.allclose(both, np.concatenate(each), rtol=1e-9, atol=0.0)


def without_gradient(probe: TorchProbe, rate: float, options: Options) -> Idle:
    """Effect of steps on a parameter without a gradient, beside one that has one."""
    used, idle = _parameter(POSITION), _parameter(POSITION)
    try:
        _walk(probe, probe.optimiser(options).build([[used, idle]], rate), [used])
    except Exception:
        return "refused"
    return "kept" if np.array_equal(idle.detach().numpy(), POSITION) else "moved"


def _walk(probe: TorchProbe, optimizer: torch.optim.Optimizer, used: Leaves | None = None) -> np.ndarray:
    """The entries of all parameters after some steps, at one gradient of each that is used and draws of one."""
    parameters = parameters_of(optimizer)
    with quiet(), draws_from(Scripted(lambda _: 1.0)):  # pyright: ignore[reportArgumentType]
        for _ in range(FEW):
            optimizer.zero_grad()
            probe.optimiser({}).step(optimizer, lambda: sum(_slope(p) for p in used or parameters))  # pyright: ignore[reportArgumentType]
    return np.concatenate([p.detach().numpy().ravel() for p in parameters])


def _slope(parameter: torch.Tensor) -> torch.Tensor:
    return (torch.from_numpy(GRADIENT).reshape(parameter.shape) * parameter).sum()


def _parameter(value: np.ndarray) -> torch.Tensor:
    return torch.nn.Parameter(torch.from_numpy(np.array(value, np.float64)))


def second_group(probe: TorchProbe, found: Convention, optimiser: Optimiser) -> Optimiser | None:
    """The optimiser with a second group of parameters that has options of its own; None if each moves as it does alone.

    Options of its own are numbers in a group, each of another value, which leave the temperature as it is. Those that
    say what the law is are not among them, and the weight decay only where no prior is claimed.
    """
    given, reading = optimiser.options, found.reading
    values = probe.start(found.rate, given).param_groups[0]
    fixed = {probe.rate, *DATA, *TEMPERATURES, *SPREADS}
    numbers = {n: v / 2 for n, v in values.items() if n in found.options and isinstance(v, float) and v > 0}
    halves = {n: v for n, v in numbers.items() if n not in fixed and takes(probe, found.rate, {**given, n: v})}
    if not (reading.settled and reading.drift and reading.variance):
        halves = {}
    all_changed = dataclasses.replace(optimiser, second=halves)
    if moves_apart(probe, all_changed, found.rate):
        return None
    own = {}
    for name, value in halves.items():
        other = read(probe, found.rate, {**given, name: value})
        same_prior = found.claimed_prior is None or other.decay == reading.decay
        if same_prior and abs(other.temperature / reading.temperature - 1) < SAME:
            own[name] = value
    both = dataclasses.replace(optimiser, second=own)
    return None if moves_apart(probe, both, found.rate) else both


def return_of(probe: TorchProbe, rate: float, options: Options) -> int:
    """Number of steps after which the draws come back; 0 if they do not within `COME_BACK` steps.

    Looked at are the places, in their streams, of what a step draws from generators that it seeds or holds: nothing but
    these can come back. Two steps one after another have to, for a seed that is drawn may come twice by chance.
    """
    memory, at, lag = probe.start(rate, options), dict[Foreign, int](), 0
    (parameter,) = parameters_of(memory)
    seeds, closure = "seed" in _source_of(probe.kind), needs_closure(probe.kind)
    with quiet(), draws_from(np.random.default_rng(0)) as tape:
        for number in range(COME_BACK):
            tape.streams.place = None
            parameter.grad = torch.zeros_like(parameter)
            if closure:
                probe.optimiser({}).step(memory, lambda: 0.0 * parameter.sum())
            else:
                memory.step()
            place, before = tape.streams.place, lag
            if place is None and number >= FEW and not seeds:
                return 0  # torch's own generator, which goes on
            lag = number - at.get(place, number) if place else 0
            if lag and lag == before:
                return lag
            at[place] = number
    return 0


def _source_of(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def schedule_of(probe: TorchProbe, rate: float, options: Options) -> Schedule:
    """Effect of a learning rate that is set in the groups, beside that of one that is given to the constructor."""
    ends = []
    for first, factor in ((rate, 0.5), (rate / 2, 1.0), (rate, 1.0)):
        memory = probe.start(first, options)
        scale_rate(memory, probe.rate, factor)
        ends.append(probe.step(memory, POSITION, GRADIENT, lambda _: 1.0)[0])
    return effect_of_schedule(*ends)
