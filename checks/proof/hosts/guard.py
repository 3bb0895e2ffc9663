"""A comparison of the step that was read with the one that runs: real steps, beside the numbers of the record.

    step(x, s; xi) = record(x, s; xi)   at random states x, step sizes s^2 and draws xi, to round-off

for a potential that is known in closed form, one step after the other, so that what is kept from step to step shows.
Two analytic functions that agree at such points are the same with probability one; what is not analytic, a branch, is
followed by the record in every way. What a step changes besides the state that it returns ends the reading.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.proof.draws import Draw, in_floats
from sgmcmc_verification.checks.proof.errors import NotReal, Unreadable
from sgmcmc_verification.checks.proof.hosts.decisions import refuse
from sgmcmc_verification.checks.proof.hosts.generators import LAWS, NumberedGenerator, numbers
from sgmcmc_verification.checks.proof.hosts.hidden import fingerprint
from sgmcmc_verification.checks.proof.hosts.states import opened
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet, StepRoot
from sgmcmc_verification.checks.proof.reader.interpreter import COUNTER, Reader
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.predicates import FLAG
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Series, Space
from sgmcmc_verification.checks.proof.traced import Traced
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator, Sampler, Stateless
from sgmcmc_verification.targets.target import Target

STEP_SIZES = (0.0531417, 0.0087263, 0.7193471, 2.3149213)
"""Of the real steps: large ones too, so that rejections and bounds show."""
ON_ORTHANT = 0.1
"""Factor of the step sizes on positive numbers, at which a square root may have no value."""
STEPS = 5
"""Steps that follow each other at each of them."""
FAR = 1e5
"""Numbers of a state beyond which it is not compared."""
ROUND_OFF = 2.0**-30
"""Relative gap of two ways to compute one number: 2^10 roundings of 2^-53, with 2^13 for the condition."""
STIFFNESS = 0.25
"""Of the well that holds the stand-in for a potential: a slice of a law that cannot be normalised may have no end."""
LONGEST = 50
"""Terms from which on a polynomial is a name: only its value is asked for."""


@dataclass(frozen=True, eq=False)
class Waves:
    """U(x) = STIFFNESS |x|^2 / 2 + sum_k c_k cos(a_k x + b_k), of which every derivative is known.

    Attributes:
        sizes: c (3,).
        directions: a (3, d).
        phases: b (3,).
    """

    sizes: np.ndarray
    directions: np.ndarray
    phases: np.ndarray

    @classmethod
    def random(cls, dimension: int) -> "Waves":
        """Waves of lengths about one."""
        rng = np.random.default_rng(dimension)
        sizes, directions = 0.5 + rng.random(3), rng.normal(size=(3, dimension)) / math.sqrt(dimension)
        return cls(sizes, directions, 6 * rng.random(3))

    def potential(self, x: Any) -> Any:
        """U at x (d,), an array of NumPy or of JAX."""
        cos = jnp.cos if isinstance(x, jax.Array) else np.cos
        return STIFFNESS / 2 * (x @ x) + self.sizes @ cos(self.directions @ x + self.phases)

    def derivative(self, x: Sequence[float], orders: Sequence[int]) -> float:
        """The partial derivative of U of some orders."""
        point, total = np.asarray(x, float), sum(orders)
        if not total:
            return float(self.potential(point))
        angles = self.directions @ point + self.phases + math.pi / 2 * total
        found = np.sum(self.sizes * np.prod(self.directions ** np.asarray(orders), axis=1) * np.cos(angles))
        if max(orders) == total <= 2:  # all of them in one coordinate
            found += STIFFNESS * (point[np.argmax(orders)] if total == 1 else 1.0)
        return float(found)


@dataclass(frozen=True, eq=False)
class WavesEstimator(Stateless):
    """The potential and its gradient, in NumPy."""

    target: Target
    waves: Waves

    backend = "host"

    def estimate(self, key: Any, estate: Any, position: Any) -> tuple[Estimate, Any]:
        """Estimate at a position, and the next state of the estimator."""
        del key
        leaves, structure = jax.tree.flatten(position)
        flat = np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in leaves])
        angles = self.waves.directions @ flat + self.waves.phases
        gradient = STIFFNESS * flat - (self.waves.sizes * np.sin(angles)) @ self.waves.directions
        ends = np.cumsum([0, *(np.size(leaf) for leaf in leaves)])
        parts = [gradient[i:j].reshape(np.shape(leaf)) for i, j, leaf in zip(ends, ends[1:], leaves, strict=False)]
        value = self.waves.potential(flat)
        return Estimate(jax.tree.unflatten(structure, parts), value), estate  # pyright: ignore[reportArgumentType]


def stand_in(target: Target, gate: list[bool]) -> Target:
    """The target with waves for its potential, to build a sampler on.

    Args:
        target: with an uninterpreted potential.
        gate: once it is filled nobody may ask for the potential but through an estimator.
    """
    waves = Waves.random(target.size)

    def potential(x: Any) -> Any:
        if gate:
            raise refuse("the potential of the target itself, beside the estimator's")
        return waves.potential(ravel_pytree(x)[0])

    return dataclasses.replace(target, potential=potential, terms=None)


def require_nothing_kept(sampler: Sampler, target: Target) -> None:
    """Raise Unreadable if two real steps change anything but the state that they return.

    Before a step is read: symbols must not stay where they are not found again.
    """
    oracle = WavesEstimator(target, Waves.random(target.size))
    # The first use may set up what then stays: torch changes the class of the first optimiser. It is from another
    # start, so that what a start leaves behind changes again.
    elsewhere = jax.tree.map(lambda x: x + 0.25, _host_array(target.example))
    with np.errstate(all="ignore"):
        sampler.init(NumberedGenerator(4), elsewhere, oracle)
    state = _quietly(sampler, lambda: sampler.init(NumberedGenerator(1), _host_array(target.example), oracle))
    for seed in (2, 3):
        state = _quietly(sampler, lambda s=state, n=seed: sampler.step(NumberedGenerator(n), s, STEP_SIZES[1], oracle))


def _host_array(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.array(leaf, np.float64), tree)


def _quietly(sampler: Sampler, function: Callable[[], Any]) -> Any:
    """The outcome of a function. Raises Unreadable if it changes anything else."""
    before = fingerprint(sampler)
    with np.errstate(all="ignore"):
        found = function()
    after = fingerprint(sampler)
    changed = [name for name in after if after[name] != before.get(name)]
    if changed:
        raise Unreadable(f"hidden state: a step that changes {changed[0]}, and not only the state that it returns")
    return found


def require_same_step(sampler: Sampler, traced: Traced, target: Target, by_variable: bool = False) -> None:
    """Raise Unreadable unless real steps of a host sampler give what its record gives.

    Args:
        sampler: of the host.
        traced: the record of it.
        target: whose positions it takes.
        by_variable: whether the record is one of z alone, so that real states are compared by it.

    Raises:
        Unreadable: if they differ, if a step changes something else than its state, or if the record has no value.
    """
    waves = Waves.random(target.size)
    guard = _Guard(sampler, traced, target, waves, WavesEstimator(target, waves), by_variable)
    guard.compare()


@dataclass(eq=False)
class _Guard:
    sampler: Sampler
    traced: Traced
    target: Target
    waves: Waves
    estimator: Estimator
    by_variable: bool

    def compare(self) -> None:
        """Raise Unreadable at the first difference."""
        space = Space(Ring(), 0, LONGEST)
        packed = list(self._ways(space, self._packed))
        stepped, whole = self._steps(space)
        factor = ON_ORTHANT if self.target.manifold.is_positive else 1.0
        for seed, size in enumerate(STEP_SIZES):
            h = factor * size
            z = self._start(seed)
            state = _quietly(
                self.sampler,
                lambda z=z, seed=seed: self.sampler.pack(NumberedGenerator(seed), z, self.estimator),
            )
            values = _Values(self.waves, {"pack": seed}, np.zeros(0), _flat(z), h)
            self._require_same(self._inexact(state), self._at(space, packed, values), "the state of a position")
            for number in range(STEPS):
                tape = 100 * (1 + seed) + number
                before = self._inexact(state)
                if np.abs(before).max(initial=0.0) > FAR:  # it runs away: waves have no value that is known there
                    break
                state = _quietly(
                    self.sampler,
                    lambda state=state, tape=tape, h=h: self.sampler.step(
                        NumberedGenerator(tape), state, h, self.estimator
                    ),
                )
                values = _Values(self.waves, {"step": tape}, before, np.zeros(0), h)
                z, position = self.sampler.unpack(state), self.sampler.position(state)
                real = np.concatenate([_flat(z), _flat(position), self._inexact(state)]) if whole else _flat(z)
                self._require_same(real, self._at(space, stepped, values), "a step")

    def _inexact(self, state: Any) -> np.ndarray:
        """The inexact numbers of a state of the host, flat; those of z where the record has no others."""
        if self.by_variable:
            return _flat(self.sampler.unpack(state))
        leaves = [np.asarray(leaf) for leaf in opened(state).leaves]
        return np.concatenate([np.ravel(leaf) for leaf in leaves if leaf.dtype.kind == "f"] or [np.zeros(0)])

    def _start(self, seed: int) -> Any:
        """A random z, of the shapes that the record knows."""
        rng = np.random.default_rng([17, seed])
        flat = 0.7 + 0.3 * rng.normal(size=self.traced.size)
        return self.traced.unravel(np.abs(flat) if self.target.manifold.is_positive else flat)

    def _ways(self, space: Space, read: Callable[[Reader], list[Series]]) -> Iterator["_Read"]:
        def run(path: Path) -> tuple[list[Polynomial], dict[Any, Any]]:
            reader = new_reader(space, path, finite=True)
            return [entry.constant_term for entry in read(reader)], reader.drawn

        for path, (entries, drawn) in every_path(run):
            yield _Read(path, entries, drawn)

    def _packed(self, reader: Reader) -> list[Series]:
        symbols = [Coordinate(f"z {i}", -1 - i, True) for i in range(self.traced.size)]
        z = [reader.space.lift(reader.ring.generator(symbol)) for symbol in symbols]
        return self.traced.inexact(reader, self.traced.packed(reader, z))

    def _steps(self, space: Space) -> tuple[list["_Read"], bool]:
        """The ways of a step, and whether they are of the whole state, or of z alone.

        A count that enters what z never depends on, as an average of all steps, has no value in the record.
        """
        try:
            return list(self._ways(space, self._stepped)), True
        except Unreadable as error:
            if error.reason != COUNTER:
                raise
            return list(self._ways(space, self._moved)), False

    def _moved(self, reader: Reader) -> list[Series]:
        size = reader.space.lift(reader.ring.generator(StepRoot(), 2))
        return self.traced.moved(reader, self.traced.any_state(reader), size)

    def _stepped(self, reader: Reader) -> list[Series]:
        size = reader.space.lift(reader.ring.generator(StepRoot(), 2))
        step = self.traced.stepped(reader, self.traced.any_state(reader), size)
        return [*step.z, *step.position, *step.after]

    def _at(self, space: Space, ways: Sequence["_Read"], values: "_Values") -> list[np.ndarray]:
        """The numbers of the record, on each way that is open at these values."""
        found = []
        flags = [label for way in ways for label in way.path.region if label.startswith(FLAG)]
        if flags:
            raise Unreadable(f"a step that does one thing or another by what it counts: {flags[0]}")
        for way in ways:
            value = values.of(space.ring)
            try:
                if _is_open(space.ring, way, value, values):
                    found.append(np.array([value(p) for p in way.entries]))
            except (NotReal, ZeroDivisionError, OverflowError, KeyError) as error:
                raise Unreadable(f"numbers of a step that could not be compared ({error!r})") from None
        if not found:
            raise Unreadable("a real step that takes none of the ways that were read")
        return found

    def _require_same(self, real: np.ndarray, ways: Sequence[np.ndarray], what: str) -> None:
        for found in ways:
            if real.shape != found.shape:
                raise Unreadable(f"{what} of another form than the one that was read")
            gap = np.abs(real - found) / (1 + np.abs(real))
            if not np.all(gap <= ROUND_OFF):
                raise Unreadable(
                    f"{what} that was read is not the one that runs: {real[np.argmax(gap)]:.6g} is"
                    f" {found[np.argmax(gap)]:.6g} in the record"
                )


class _Read(NamedTuple):
    """The reading of one way: the numbers, and what the keys were used for."""

    path: Path
    entries: list[Polynomial]
    drawn: Mapping[Any, Any]


def _is_open(ring: Ring, way: _Read, value: Callable[[Polynomial], float], values: "_Values") -> bool:
    """True if all that a way takes for given holds at some values."""
    path = way.path
    if any((value(p) < 0) != negative for p, negative in path.assumed.items()):
        return False
    if any((value(a.difference) < 0) != a.holds for a in path.acceptances):
        return False
    bounds = path.intervals.items()
    if not all(low <= value(ring.power(number, 1)) < high for number, (low, high) in bounds):
        return False
    return all(
        values.integers(name, str(way.drawn[_history(name)].law), len(outcome)) == list(outcome)
        for name, outcome in path.outcomes.items()
    )


def _history(name: Any) -> Any:
    """The history of the key of an outcome; that of an order has a word beside it."""
    return name[0] if isinstance(name, tuple) else name


@dataclass(frozen=True, eq=False)
class _Values:
    """The numbers of the free generators of a ring.

    Attributes:
        waves: the potential.
        seeds: root of a key -> the seed of the draws.
        state: the numbers of the state.
        z: values of the coordinates of z.
        step_size: h.
    """

    waves: Waves
    seeds: Mapping[str, int]
    state: np.ndarray
    z: np.ndarray
    step_size: float

    def of(self, ring: Ring) -> Callable[[Polynomial], float]:
        """Polynomial -> its value."""

        def free(number: int) -> float:
            match ring.generators[number]:
                case StepRoot():
                    return math.sqrt(self.step_size)
                case Coordinate(index=index):
                    return float(self.z[-1 - index] if index < 0 else self.state[index])
                case Jet(name="U", orders=orders, point=point):
                    return self.waves.derivative([value(p) for p in point], orders)
                case Draw(law=law, history=history, place=place):
                    return float(self._drawn(history, place + 1, *map(float, law.parameters))[place])
                case _:
                    raise Unreadable(f"a number of a step that has no value, {ring.generators[number]}")

        value = in_floats(ring, free)
        return value

    def _drawn(self, history: Any, size: int, *parameters: Any) -> np.ndarray:
        call, law = history.children
        return numbers(self.seeds[history.root], call, LAWS[law], size, *parameters)

    def integers(self, name: Any, use: str, size: int) -> list[int]:
        """The integers of a call, whose range is in the words for its use."""
        history = _history(name)
        if history is not name:
            return self._drawn(history, size).tolist()
        low, high = (int(word) for word in re.findall(r"-?\d+", use))
        return self._drawn(history, size, low, high + 1).tolist()


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf, float)) for leaf in jax.tree.leaves(tree)] or [np.zeros(0)])
