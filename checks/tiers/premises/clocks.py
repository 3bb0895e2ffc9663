"""Clocks: what counts the steps of a run is put forward, in a state and in what a host sampler keeps beside it."""

import copy
import inspect
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.tracing.whole_numbers import of_step
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.opened_state import step_of
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.turns import turn_of

ADVANCES = (1, 2, 3, 5, 7, 10, 32, 64, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Steps by which what counts is put forward; besides, it is set to the whole numbers that stand in the program."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, are spread over the unit interval."""
SPREAD = np.arange(1, 257) * GOLDEN % 1 * 20
SPREAD = tuple(np.unique(np.concatenate([2**SPREAD, 2**20 / 20 * SPREAD]).astype(int)).tolist())
"""Readings spread over a million steps, and over their logarithm: a schedule may have its numbers in a table or in the
state, and a window that is open in one step of a hundred is met."""
ON_HOST = 16
"""One in so many of them for a host sampler, whose steps are taken one by one."""
NARROW = 2**16
"""Largest number of a type whose end a count gets past in a run."""
EVEN = 1e-9
"""Relative difference of the increments of what counts with a fraction, such as a time."""
LONGEST = 20_000
"""Entries up to which a list that grows is put forward."""
KEYS = 4
"""Keys under which a state that was put forward is compared."""
TOLERANCE = 1e-10
"""Relative gap that two programs of one step may leave: 4e5 units in the last place, for solvers that start afresh."""


def ahead(leaf: np.ndarray, readings: tuple[int, ...], largest: float, turn: int = 1) -> list[int]:
    """Steps by which a leaf is put forward: `ADVANCES`, those to some readings, and past the end of its type.

    A count of turns is put forward by whole ones, and what only goes round not at all.
    """
    if turn == 0:
        return []
    whole = lambda n: -(-n // turn) * turn
    if leaf.size != 1:
        return [n for n in map(whole, ADVANCES) if n < largest]
    now = leaf.item()
    steps = list(map(whole, [*ADVANCES, *(int(n - now) for n in readings if n > now)]))
    past = [whole(int(largest) - now + 1)] if largest <= NARROW else []
    return list(dict.fromkeys([n for n in (*steps, *past) if n < largest and n + now <= largest] + past))


_Held = dict[int, tuple[dict[type, dict[str, Any]], dict[str, Any]]]
"""Steps -> the attributes of classes, and those of an object, after them."""


class _Count(NamedTuple):
    """Something that counts: a number, or a list that grows.

    Attributes:
        what: in words.
        value: of it.
        each: what a step adds.
        put: another value -> the object and the state with it.
        turn: steps by which it may be put forward.
    """

    what: str
    value: Any
    each: Any
    put: Callable[[Any], tuple[Sampler, Any]]
    turn: int = 1

    @property
    def most(self) -> float:
        """Bound of its readings."""
        return LONGEST if isinstance(self.value, list | deque) else np.inf

    @property
    def now(self) -> np.ndarray:
        """Its reading."""
        return np.asarray(len(self.value) if isinstance(self.value, list | deque) else self.value)

    def after(self, steps: int) -> Any:
        """The value after so many steps more."""
        if not isinstance(self.value, list | deque):
            return self.value + self.each * steps
        longer = copy.copy(self.value)
        longer.extend(list(longer)[-1:] * steps)
        return longer


def host_clock(sampler: Sampler, estimator: Estimator, h: float, state: Any) -> tuple[str, int, float] | None:
    """(what, steps, gap) of the first thing that counts the steps of a host sampler and matters.

    Put forward are whole numbers in its state, and numbers and lists in its object and its classes that a step changes.
    """
    seen = lambda s: np.concatenate(
        [np.ravel(np.asarray(leaf, float)) for leaf in jax.tree.leaves((sampler.unpack(s), sampler.position(s)))]
    )

    def ends(owner: Sampler, s: Any) -> list[np.ndarray]:
        owners = [copied(owner) for _ in range(KEYS)]
        generators = [np.random.default_rng([3, seed]) for seed in range(KEYS)]
        steps = zip(owners, generators, strict=True)
        return [seen(each.step(generator, copied(s), h, estimator)) for each, generator in steps]

    readings = (*of_step(step_of(sampler)), *SPREAD[::ON_HOST])
    kinds, walked = _kinds(sampler), copied(sampler)
    held = lambda: ({kind: copied(_data(kind)) for kind in kinds}, copied(_attributes(walked)))
    seen_at = {0: held()}
    try:
        before = ends(sampler, state)
        seen_at[KEYS] = held()[0], seen_at[0][1]
        for seed in range(2):
            walked.step(np.random.default_rng([5, seed]), copied(state), h, estimator)
            seen_at[KEYS + 1 + seed] = held()
        counts = _of_state(sampler, state), _of_object(sampler, seen_at, state), _of_kinds(sampler, seen_at, state)
        for count in itertools.chain(*counts):
            for n in ahead(count.now, readings, count.most, count.turn):
                owner, s = count.put(count.after(n))
                if not np.array_equal(seen(s), seen(state)):
                    break  # a part of z
                try:
                    pairs = list(zip(ends(owner, s), before, strict=True))
                except RAISED:  # no run gets there: an index that goes round, past its end
                    continue
                gap = max(np.abs(a - b).max() / (1e-300 + np.abs(b).max()) for a, b in pairs)
                if not gap <= TOLERANCE:
                    return count.what, n, float(gap)
    finally:
        for kind, values in seen_at[0][0].items():
            for name, value in values.items():
                setattr(kind, name, value)
    return None


def _of_state(sampler: Sampler, state: Any) -> Iterator[_Count]:
    leaves, structure = jax.tree.flatten(state)
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(state)[0]]
    for i, leaf in enumerate(leaves):
        put = lambda value, i=i: (sampler, jax.tree.unflatten(structure, [*leaves[:i], value, *leaves[i + 1 :]]))
        if _is_whole(leaf):
            yield _Count(f"state{names[i]}", leaf, 1, put, turn_of(sampler, i))


def _of_object(sampler: Sampler, seen_at: _Held, state: Any) -> Iterator[_Count]:
    """The counts in the attributes of an object, by those of a copy that has taken two steps."""
    for name, value in seen_at[0][1].items():
        put = lambda v, name=name: (_with(sampler, name, v), state)
        values = [(max(steps - KEYS, 0), held[1].get(name)) for steps, held in seen_at.items()]
        if (each := _grown(values)) is not None:
            yield _Count(f"the attribute {name}", value, each, put)


def _of_kinds(sampler: Sampler, seen_at: _Held, state: Any) -> Iterator[_Count]:
    """The counts in the attributes of classes, by what they were after some steps of any object."""
    for kind, values in seen_at[0][0].items():
        for name, value in values.items():
            put = lambda v, kind=kind, name=name: (setattr(kind, name, v), (sampler, state))[1]
            if (each := _grown([(steps, held[0][kind].get(name)) for steps, held in seen_at.items()])) is not None:
                yield _Count(f"the attribute {name} of {kind.__name__}", value, each, put)


def _grown(values: Sequence[tuple[int, Any]]) -> Any:
    """The addition of a step, from (steps, value) along a run; None for what does not count them.

    A number with a fraction, or a list, counts the steps if it grows by the same in each: an energy does not. A whole
    number may count some of them only.
    """
    lists = all(isinstance(value, list | deque) for _, value in values)
    if not lists and not all(_is_number(value) for _, value in values):
        return None
    steps, numbers = zip(*((n, np.asarray(len(v) if lists else v, float).item()) for n, v in values), strict=True)
    grown = np.array(numbers) - numbers[0]
    if not np.all(np.isfinite(grown)) or not grown.any():
        return None
    each = grown[-1] / steps[-1]
    even = np.abs(grown - each * np.array(steps)).max() <= EVEN * np.abs(grown).max()
    if lists:
        return 1 if even and each > 0 else None
    if _is_whole(values[0][1]):
        return int(each) if even and each == int(each) else 1
    return each if even else None


def _is_number(value: Any) -> bool:
    """True for one number, also in an array."""
    if isinstance(value, np.ndarray):
        return value.size == 1 and value.dtype.kind in "iuf"
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """True for a single whole number, of Python or NumPy."""
    kind = getattr(value, "dtype", None)
    if kind is None:
        return isinstance(value, int) and not isinstance(value, bool)
    return np.shape(value) == () and np.issubdtype(kind, np.integer)


def _owner(sampler: Sampler) -> Any:
    """The object whose method `step` is."""
    step = step_of(sampler)
    return step.__self__ if inspect.ismethod(step) else sampler


def _attributes(sampler: Sampler) -> dict[str, Any]:
    """Attributes of the object whose method `step` is."""
    owner = _owner(sampler)
    return dict(vars(owner)) if hasattr(owner, "__dict__") else {}


def _with(sampler: Sampler, name: str, value: Any) -> Sampler:
    """A copy with another value of an attribute of the object whose method `step` is."""
    other = copied(sampler)
    object.__setattr__(_owner(other), name, value)
    return other


def _kinds(sampler: Sampler) -> list[type]:
    """Classes of the object whose method `step` is; those of the suite and of Python keep nothing."""
    others = ("builtins", "abc", "typing", "sgmcmc_verification.samplers.interface")
    return [kind for kind in type(_owner(sampler)).__mro__ if not kind.__module__.startswith(others)]


def _data(kind: type) -> dict[str, Any]:
    """The attributes of a class that may count."""
    return {name: value for name, value in vars(kind).items() if isinstance(value, list | deque) or _is_number(value)}
