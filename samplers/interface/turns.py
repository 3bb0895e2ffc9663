"""Steps by the turn: a sampler whose state counts round is a Markov kernel of z once in each turn of its count.

A momentum that is drawn afresh in every tenth step, an epoch of minibatches, an anchor that is renewed: the kernel of
one step depends on where in its turn the state is, that of a whole turn does not. With steps of h / P a turn of P steps
is as long as a step of size h, and keeps the law that each of them has to keep in the end.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.typing import ArrayLike

from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ExactLaw, StationaryLaw
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, Position, Scalar, State
from sgmcmc_verification.samplers.interface.whole_state import (
    Compiler,
    KnownTurn,
    Programs,
    WholeState,
    aside,
    closed_step,
    is_key,
    made_from,
    whole_state,
    with_leaves,
)

MOST, ON_HOST = 128, 32
"""Steps of the longest turn that is looked for, and of that of a sampler that Python takes step by step."""
MOST_BEGINS = 32
"""Steps of a turn that are tried as its first one."""
FEW = 8
"""Steps of a turn up to which its program is written out."""
TRANSIENT = 4
"""More than the steps after which a count goes round that has begun with something else."""
KEYS = 4
"""Keys under which steps are compared: a step that rejects shows nothing."""
SEEN = 1_000
"""Numbers of a state up to which all are compared."""
SAME = 1e-10
"""Relative gap that two programs of one step may leave."""


@dataclass(frozen=True, eq=False)
class Turns(Completed):
    """A sampler whose step is a turn of another one's steps.

    Attributes:
        turn: number of those steps.
        begin: the step of those seen with which it begins.
        clocks: places among the leaves of a state of what counts them without end.
        hands: places of what reads the same after each turn.
        rest: places of what else z holds beside the position; empty where z is the sampler's own.
    """

    turn: int = 1
    begin: int = 0
    clocks: tuple[int, ...] = ()
    hands: tuple[int, ...] = ()
    rest: tuple[int, ...] = ()


def turn_of(sampler: Sampler, place: int) -> int:
    """Steps by which a leaf of a state may be put forward: those of a turn, 1 without turns, 0 for what goes round."""
    if not isinstance(sampler, Turns) or place not in (*sampler.clocks, *sampler.hands):
        return 1
    return sampler.turn if place in sampler.clocks else 0


def by_turns(
    sampler: Completed,
    start: State,
    estimator: Estimator,
    unit: float,
    make_key: Callable[[int], Key],
    found_z: bool,
    compiled: Compiler = jax.jit,
    programs: Programs | None = None,
) -> Completed:
    """The sampler as it is, or that of its turns if what is hidden in its state counts round.

    Args:
        sampler: any; one that claims more than a law is returned as it is.
        start: a state that its `init` has made, at a position in the bulk.
        estimator: of its gradients.
        unit: one over the curvature, of which a step size is a tenth.
        make_key: number -> key, or generator of a host sampler.
        found_z: whether its z was found in its state, and is to be found in that of its turns.
        compiled: makes of its `init` and `step` what is called a few times.
        programs: of the sampler; None to trace it. A turn that they know of is looked for first, and takes few steps
            to see again.
    """
    if not all(isinstance(claim, StationaryLaw | ExactLaw) for claim in sampler.claims):
        return sampler
    counts = [i for i, leaf in enumerate(jax.tree.leaves(start)) if _is_count(leaf)]
    if not counts:
        return sampler
    if not on_host(sampler):
        traced = programs.traced(make_key(0), start) if programs else closed_step(sampler, start, estimator, 0.1)
        if not _are_read(traced.jaxpr, counts):
            return sampler
    search = _Search(sampler, start, estimator, unit, make_key, found_z, compiled, tuple(counts))
    if programs and programs.turn and (found := search.again(programs.turn)):
        return found
    return search.up_to(ON_HOST if on_host(sampler) else MOST) or sampler


@dataclass(frozen=True, eq=False)
class _Search:
    """The arguments of `by_turns`, and the places of what may count; without turns each way to look returns None."""

    sampler: Completed
    start: State
    estimator: Estimator
    unit: float
    make_key: Callable[[int], Key]
    found_z: bool
    compiled: Compiler
    counts: tuple[int, ...]

    def again(self, known: KnownTurn) -> Turns | None:
        """The sampler of turns that another target has shown."""
        seen = self._seen(known.length)
        if seen.length != known.length:
            return None
        return self._made(seen, known.begin, self._whole(self._turning(seen, 0)), known.rest)

    def up_to(self, most: int) -> Turns | None:
        """The sampler of turns of at most so many steps; they begin where they read the least of a state."""
        seen = self._seen(most)
        if seen.length < 2:
            return None
        turns = self._turning(seen, 0)
        whole, step = self._whole(turns), _step_of(turns, self.estimator, 0.1 * self.unit)
        # what is drawn ahead for several steps, or renewed in the last of them, is read by no turn that begins with it
        rests = (_rest(step, whole, begun, self.make_key) if whole else () for begun in seen.begun[:MOST_BEGINS])
        first = next(rests)
        begin = next((n for n, rest in enumerate(itertools.chain([first], rests)) if not rest), None)
        if begin is not None and (whole or not seen.before):
            return self._made(seen, begin, whole, ())
        # where `init` begins, a turn ends with what it never reads again
        return None if seen.before else self._made(seen, 0, whole, first)

    def _whole(self, turns: Completed) -> WholeState | None:
        """The whole state of turns; None where z is the sampler's own."""
        if not self.found_z:
            return None
        return whole_state(turns, self.start, self.estimator, self.unit, self.make_key, self.compiled)

    def _seen(self, most: int) -> "_Seen":
        """The turns of at most so many steps that are observed."""
        step = _step_of(self.sampler, self.estimator, 0.1 * self.unit)
        readings, lived = _readings(step, self.start, self.counts, self.make_key, 2 * most)
        clocks = [k for k in range(len(self.counts)) if _goes_by_itself(k, *readings)]
        places = tuple(self.counts[k] for k in clocks)
        read = [[seen[k] for k in clocks] for seen in readings[0]]
        set_to = [with_leaves(lived, dict(zip(places, values, strict=True))) for values in read]
        shown = lambda state: _shown(self.sampler, state)
        if not places or any(not np.array_equal(shown(s), shown(lived)) for s in set_to):
            return _Seen()  # a part of z
        ends = [[shown(step(self.make_key(k), s)) for k in range(KEYS)] for s in set_to]
        found = ((before, _period(np.asarray(ends[before:]), most)) for before in range(TRANSIENT))
        before, turn = next((pair for pair in found if pair[1]), (0, 0))
        if not turn:
            return _Seen()
        same = lambda k: all(np.array_equal(a[k], b[k]) for a, b in itertools.pairwise(readings[0][before::turn]))
        hands = tuple(self.counts[k] for k in clocks if same(k))
        return _Seen(turn, tuple(i for i in places if i not in hands), hands, before, set_to[before : before + turn])

    def _turning(self, seen: "_Seen", begin: int) -> Completed:
        """The sampler of turns, whose `init` sets what counts to where they begin."""
        sampler = self.sampler
        step = _turn(sampler.step, seen.length, on_host(sampler))
        if not (begin or seen.before):
            return dataclasses.replace(sampler, step=step)
        values = self._counted(seen, begin)

        def init(key: Key, position: Position, estimator: Estimator) -> State:
            return with_leaves(sampler.init(key, position, estimator), values)

        return dataclasses.replace(sampler, step=step, init=init)

    @staticmethod
    def _counted(seen: "_Seen", begin: int) -> dict[int, ArrayLike]:
        """Values of the counts where turns begin."""
        leaves = jax.tree.leaves(seen.begun[begin])
        return {i: leaves[i] for i in (*seen.clocks, *seen.hands)}

    def _made(self, seen: "_Seen", begin: int, whole: WholeState | None, rest: tuple[int, ...]) -> Turns:
        """The sampler of turns, and of their z where it is found in its state: the position and `rest`."""
        turns, start = self._turning(seen, begin), self.start
        if begin or seen.before:
            start = with_leaves(start, self._counted(seen, begin))
        found: dict[str, Any] = {field.name: getattr(turns, field.name) for field in dataclasses.fields(Completed)}
        if whole:
            whole = dataclasses.replace(whole, sampler=turns, leaves=tuple(jax.tree.leaves(start)), rest=rest)
            found |= {"unpack": whole.unpack, "pack": whole.pack}
        rest = rest if whole else ()
        return Turns(**found, turn=seen.length, begin=begin, clocks=seen.clocks, hands=seen.hands, rest=rest)


class _Seen(NamedTuple):
    """Observed turns.

    Attributes:
        length: steps of one, 0 if there is none.
        clocks: places of what counts without end.
        hands: places of what reads the same after each turn.
        before: steps in which a count has what it never reads again.
        begun: a state with what counts as it is before each step of a turn.
    """

    length: int = 0
    clocks: tuple[int, ...] = ()
    hands: tuple[int, ...] = ()
    before: int = 0
    begun: Sequence[State] = ()


def _readings(
    step: Callable[[Key, State], State],
    start: State,
    counts: tuple[int, ...],
    make_key: Callable[[int], Key],
    length: int,
) -> tuple[list[list[list[np.ndarray]]], State]:
    """Readings of what counts along two runs with keys of their own, and the end of the second."""
    readings, state = [], start
    for run in range(2):
        state, seen = start, []
        for n in range(length):
            leaves = jax.tree.leaves(state)
            seen.append([np.asarray(leaves[i]) for i in counts])
            state = step(make_key(1 + n + length * run), state)
        readings.append(seen)
    return readings, state


def _are_read(traced: core.Jaxpr, counts: list[int]) -> bool:
    """True if anything else in a state depends on what counts: on a record of steps nothing does."""
    read = made_from(traced, [i for i in range(len(traced.outvars)) if i not in counts])
    return any(read[1 + i] for i in counts)


def _goes_by_itself(k: int, ours: list[list[np.ndarray]], others: list[list[np.ndarray]]) -> bool:
    """True for a number that changes along a run, and in the same way along another one."""
    changes = any(not np.array_equal(seen[k], ours[0][k]) for seen in ours)
    return changes and all(np.array_equal(a[k], b[k]) for a, b in zip(ours, others, strict=True))


def _is_count(leaf: Any) -> bool:
    kind = jnp.result_type(leaf)
    return not is_key(leaf) and (jnp.issubdtype(kind, jnp.integer) or jnp.issubdtype(kind, jnp.bool_))


def _step_of(sampler: Sampler, estimator: Estimator, h: float) -> Callable[[Key, State], State]:
    if on_host(sampler):
        walked = aside(sampler)
        return lambda rng, state: walked.step(rng, copied(state), h, estimator)
    return jax.jit(lambda key, state: sampler.step(key, state, h, estimator))


def _shown(sampler: Sampler, state: State) -> np.ndarray:
    """z and the position, flat; of many numbers some, and two sums of all, for hundreds of states are compared."""
    parts = jax.tree.leaves((sampler.unpack(state), sampler.position(state)))
    flat = np.concatenate([np.ravel(np.asarray(part, float)) for part in parts])
    if flat.size <= SEEN:
        return flat
    wave = np.cos(1.3 * np.arange(flat.size))
    return np.concatenate([flat[:: flat.size // SEEN], [flat.sum(), wave @ flat]])


def _period(ends: np.ndarray, most: int) -> int:
    """The least P up to `most` with the same ends at n and at n + P, for all n, or 0: ends (M, KEYS, n)."""
    if not np.all(np.isfinite(ends)):
        return 0
    size = np.abs(ends).max()
    for turn in range(1, min(most, len(ends) - 1) + 1):
        if np.abs(ends[turn:] - ends[:-turn]).max() <= SAME * size:
            return turn
    return 0


def _turn(step: Callable[..., State], turn: int, host: bool) -> Callable[..., State]:
    """A step of size h as so many steps of size h / turn."""

    def host_turn(rng: Key, state: State, step_size: Scalar, estimator: Estimator) -> State:
        for _ in range(turn):
            state = step(rng, state, step_size / turn, estimator)
        return state

    def traced_turn(key: Key, state: State, step_size: Scalar, estimator: Estimator) -> State:
        keys = jax.random.split(key, turn)
        h = step_size / turn
        if turn <= FEW:
            for each in keys:
                state = step(each, state, h, estimator)
            return state
        return jax.lax.scan(lambda s, each: (step(each, s, h, estimator), None), state, keys)[0]

    return host_turn if host else traced_turn


def _rest(
    step: Callable[[Key, State], State], whole: WholeState, begun: State, make_key: Callable[[int], Key]
) -> tuple[int, ...]:
    """Those of the other leaves of z that a turn reads: an anchor that it begins by renewing is none."""
    shown = lambda state: [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    leaves = jax.tree.leaves(begun)
    before = [shown(step(make_key(k), begun)) for k in range(KEYS)]
    read = []
    for i in whole.rest:
        moved = np.asarray(leaves[i]) * 1.01 + 0.01
        other = with_leaves(begun, {i: moved if on_host(whole.sampler) else jax.device_put(moved)})
        after = [shown(step(make_key(k), other)) for k in range(KEYS)]
        same = all(np.array_equal(a, b) for x, y in zip(before, after, strict=True) for a, b in zip(x, y, strict=True))
        read += [] if same else [i]
    return tuple(read)
