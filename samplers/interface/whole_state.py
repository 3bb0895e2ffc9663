"""The full variable of a sampler that shows none: what of its state the next steps read.

A sampler of another author may carry a momentum, an average or a cache, and write no `unpack`. Its state is a Markov
chain all the same. z = (position, every other number that a later position depends on) has a law, which is the one to
be computed. No part of it are numbers that nothing reads (records), that follow from the position (caches, which `init`
makes anew), that never change, and that change by themselves (clocks: whether they matter is a question of its own).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.interpreters.partial_eval import dce_jaxpr
from jax.typing import ArrayLike

from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.outline import outline
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, Position, State, Tree
from sgmcmc_verification.samplers.interface.walkers import Beside, Follower, with_followers

STEPS = 8
"""Steps after which a cache still has to follow from the position, at each of two step sizes."""
LONG = 1000
"""Steps of a run in which a copy of the position has to stay one: a coin may say which part of the state is shown."""
STEP_SIZES = (0.02, 0.5)
"""In units of one over the curvature: at the larger one exact kernels reject."""
LIVED, KEYS, MANY_KEYS = 3, 8, 24
"""Steps of a host sampler after which, and keys under which, it is asked what it reads; and at the start. Many for the
smallest of the changes: one step in five may be of the kind that reads it, and is accepted. A proposal may stay where
it was in one step of three, whatever decides on it."""
FOLLOWED = 300
"""Steps of a host sampler along which a number that never changes is seen to be a constant."""
OFFSETS = (0.01, 1.0, -1.0, 1e3, -1e3)
"""Changes of a number, in units of one and its size, up to those that leave no coin a choice."""
ROUNDOFF = 0.6
"""Power of the unit in the last place up to which a cache that is computed again may differ: 4e-10, 7e-5 in float32."""


Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes of a function of arrays one with the same values that is faster to call, as `jax.jit` does."""


@dataclass(frozen=True, eq=False)
class Programs:
    """A step at some size, and `init`, as they were traced once for all questions about them.

    Attributes:
        step: key, state -> the next state.
        init: key, position -> state.
        traced: the same -> the program of that step, from a key and the leaves of a state to those of the next one.
        caches: of steps that were looked at before, by their outlines and the places that were asked about.
        turn: what was found of the turns of the same program on another target; None if nothing is known.
    """

    step: Callable[[Key, State], State]
    init: Callable[[Key, Position], State]
    traced: Callable[[Key, State], core.ClosedJaxpr]
    caches: dict[Hashable, list[int]]
    turn: "KnownTurn | None" = None


class KnownTurn(NamedTuple):
    """Steps of a turn, the places of those leaves beside the position that it reads, and the step it begins with."""

    length: int
    rest: tuple[int, ...]
    begin: int


class Whole(NamedTuple):
    """z: the leaves of the position, and the other leaves that a later position depends on, in their order."""

    position: Tree
    rest: tuple[ArrayLike, ...]


RAW = ((2,), (4,))
"""Words of a raw key: of threefry, and of rbg."""


def is_key(leaf: Any) -> bool:
    """True for typed keys, and for the words of a raw one; a state of the host may hold what has no dtype."""
    kind = getattr(leaf, "dtype", None)
    if isinstance(kind, np.dtype):
        return kind == np.uint32 and np.shape(leaf)[-1:] in RAW
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_words(leaf: ArrayLike) -> ArrayLike:
    """The words of typed keys; any other array as it is."""
    typed = jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
    return jax.random.key_data(jnp.asarray(leaf)) if typed else leaf


def fresh_key(key: Key, leaf: ArrayLike) -> jax.Array:
    """Keys of the shape and kind of `leaf`, from `key`."""
    if not jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key):
        return jax.random.bits(key, np.shape(leaf), jnp.uint32)
    return jax.random.split(key, np.shape(leaf)) if np.shape(leaf) else jax.random.fold_in(key, 0)


@dataclass(frozen=True, eq=False)
class WholeState:
    """`unpack` and `pack` of a sampler whose z is found in its state.

    Attributes:
        sampler: whose `init` makes a state.
        structure: of its states.
        leaves: of a state of `init`; what is no part of z keeps these values.
        position: structure of a position, whose leaves stand at `places` of the state or are computed; None if they
            are computed from leaves that do not follow from the position.
        places: of the leaves of the position among those of the state.
        rest: places of the other leaves of z.
        caches: places of leaves that follow from the position.
        computed: whether the position is computed from leaves that follow from it, and stands for them in z: the
            state has other coordinates.
        constants: places of leaves that a later position depends on and no step changes.
        followers: of other walkers among the rest: what follows from them as a cache from the position.
    """

    sampler: Sampler
    structure: Any
    leaves: tuple[ArrayLike, ...]
    position: Any
    places: tuple[int, ...]
    rest: tuple[int, ...]
    caches: tuple[int, ...]
    computed: bool = False
    constants: tuple[int, ...] = ()
    followers: tuple[Follower, ...] = ()

    def unpack(self, state: State) -> Tree:
        """Position and the rest; the position alone if there is none."""
        leaves = jax.tree.leaves(state)
        others = tuple(leaves[i] for i in self.rest)
        if self.position is None:
            return others
        position = self.sampler.position(state)
        return Whole(position, others) if others else position

    def pack(self, key: Key, z: Tree, estimator: Estimator) -> State:
        """The state with these leaves; caches are computed anew, and keys among the leaves are new ones."""
        values = jax.tree.leaves(z)
        leaves = list(self.leaves)
        if self.caches:
            position = jax.tree.unflatten(self.position, values[: self.position.num_leaves])
            leaves = jax.tree.leaves(self.sampler.init(key, position, estimator))
            for i in self.constants:
                leaves[i] = self.leaves[i]
        if not on_host(self.sampler):
            leaves = [fresh_key(key, leaf) if is_key(leaf) else leaf for leaf in leaves]
        kept = values[self.position.num_leaves :] if self.computed else values
        for i, value in zip((*self.places, *self.rest), kept, strict=True):
            leaves[i] = value
        if self.followers:
            made = lambda walker: jax.tree.leaves(self.sampler.init(key, walker, estimator))
            leaves = with_followers(leaves, self.followers, made)
        return jax.tree.unflatten(self.structure, leaves)


def whole_state(
    sampler: Sampler,
    start: State,
    estimator: Estimator,
    step_size: float,
    make_key: Callable[[int], Key],
    compiled: Compiler = jax.jit,
    programs: Programs | None = None,
) -> WholeState:
    """The whole state of a sampler; raises whatever its `init` or `step` raises.

    Args:
        sampler: any.
        start: a state that its `init` has made, at a position in the bulk.
        estimator: of its gradients.
        step_size: the step size in units of which `STEP_SIZES` are.
        make_key: number -> key, or generator of a host sampler.
        compiled: makes of `init` and `step` what is called a few times.
        programs: of the sampler; None to trace it.
    """
    leaves, structure = jax.tree.flatten(start)
    read = jax.tree.structure(sampler.position(start))
    places = places_of(sampler, structure, leaves)
    kind = _kind(sampler.position(start))
    others = [i for i in _inexact(leaves, kind) if i not in (places or ())]
    constants: list[int] = []
    calls = _calls(sampler, estimator, make_key, compiled)
    asked = lambda: _caches(sampler, start, estimator, step_size, others, places or (), calls)
    if others and not on_host(sampler):
        program = (
            programs.traced(make_key(0), start).jaxpr if programs else traced_step(sampler, start, estimator, step_size)
        )
        needed = _needed(sampler, start, program, places)
        others = [i for i in others if i in needed]
    elif others and places is not None:
        used = _read_on_host(sampler, start, estimator, STEP_SIZES[0] * step_size, others, make_key, places)
        moving = _moving_on_host(sampler, start, estimator, STEP_SIZES[0] * step_size, used, make_key)
        constants = sorted(used - moving)
        others = [i for i in others if i in moving]
    if programs is None or on_host(sampler):
        caches = asked() if others else []
    else:
        caches = _remembered(programs, sampler, start, others, make_key, asked)
    computed = places is None and set(caches) >= _sources(sampler, structure, leaves)
    if places is None and not computed:
        caches = []
    rest = [i for i in others if i not in caches]
    followers: tuple[Follower, ...] = ()
    if len(rest) > 1 and read.num_leaves == 1 and not computed:
        beside = Beside(rest, caches, sampler.position, calls.init, _equal)
        followers = beside.followers(start, _visited(start, step_size, calls))
        rest = [i for i in rest if i not in {each.slot.leaf for each in followers}]
    shape = read if computed or places is not None else None
    return WholeState(
        sampler,
        structure,
        tuple(leaves),
        shape,
        places or (),
        tuple(rest),
        tuple(caches),
        computed,
        tuple(constants),
        followers,
    )


def _remembered(
    programs: Programs,
    sampler: Sampler,
    start: State,
    others: list[int],
    make_key: Callable[[int], Key],
    asked: Callable[[], list[int]],
) -> list[int]:
    """Caches among other places: those of the same code at other shapes if one step agrees, else what is `asked`."""
    if not others:
        return []
    leaves = jax.tree.leaves(start)
    # one number shows less than many: the mean of one is itself
    name = (
        outline(programs.traced(make_key(0), start).jaxpr),
        tuple(np.size(leaf) > 1 for leaf in leaves),
        tuple(others),
    )
    before = programs.caches.get(name)
    if before:
        state = programs.step(make_key(1), start)
        anew = programs.init(make_key(100), sampler.position(state))
        pairs = list(zip(jax.tree.leaves(state), jax.tree.leaves(anew), strict=True))
        before = before if all(_equal(*pairs[i]) for i in before) else None
    if before is None:
        before = programs.caches[name] = asked()
    return before


def shown_by(leaves: Iterable[ArrayLike]) -> tuple[bool, ...]:
    """For each leaf whether it is of several numbers: one shows less of a code, for the mean of one is itself."""
    return tuple(np.size(leaf) > 1 for leaf in leaves)


def _sources(sampler: Sampler, structure: Any, leaves: list[ArrayLike]) -> set[int]:
    """Places of the inexact leaves that the position is computed from: it changes with them."""
    read = lambda values: jax.tree.leaves(sampler.position(jax.tree.unflatten(structure, values)))
    before, found = read(leaves), set()
    for i in _inexact(leaves, _kind(before)):
        moved = leaves[i] * 1.01 + 0.01 if jnp.issubdtype(jnp.result_type(leaves[i]), jnp.inexact) else leaves[i] + 1
        after = read([*leaves[:i], moved, *leaves[i + 1 :]])
        if not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
            found.add(i)
    return found


def _inexact(leaves: Iterable[ArrayLike], kind: type = jnp.inexact) -> list[int]:
    return [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), kind)]


def _kind(position: Position) -> type:
    """Kind of the numbers that a position may be made of: any where it is whole numbers itself."""
    read = jax.tree.leaves(position)
    return jnp.number if len(_inexact(read)) < len(read) else jnp.inexact


def places_of(sampler: Sampler, structure: Any, leaves: list[ArrayLike]) -> tuple[int, ...] | None:
    """Places of the leaves of the position in the state; None if one of them is computed.

    Each inexact leaf is given numbers of its own, by which it is known again; each leaf of numbers where a position is
    whole numbers.
    """
    read = jax.tree.leaves(sampler.position(jax.tree.unflatten(structure, leaves)))
    marked, inexact = list(leaves), _inexact(leaves, _kind(read))
    make = np.asarray if on_host(sampler) else jnp.asarray
    for number, i in enumerate(inexact):
        size = int(np.size(leaves[i]))
        values = (number + 1 + np.arange(1, size + 1) / (size + 2)).reshape(np.shape(leaves[i]))
        if not jnp.issubdtype(jnp.result_type(leaves[i]), jnp.inexact):
            values = (number + 1) * 10_000 + np.arange(size).reshape(np.shape(leaves[i]))
        marked[i] = make(values, jnp.result_type(leaves[i]))
    places = []
    for leaf in jax.tree.leaves(sampler.position(jax.tree.unflatten(structure, marked))):
        same = [i for i in inexact if np.shape(marked[i]) == np.shape(leaf) and np.array_equal(marked[i], leaf)]
        if not same:
            return None
        places.append(same[0])
    return tuple(places)


def traced_step(sampler: Sampler, state: State, estimator: Estimator, h: float) -> Any:
    """The program of a step from a key and the leaves of a state to the leaves of the next one."""
    return closed_step(sampler, state, estimator, h).jaxpr


def closed_step(sampler: Sampler, state: State, estimator: Estimator, h: float) -> core.ClosedJaxpr:
    """The same with the arrays that it holds."""
    step = step_of_leaves(sampler, state, estimator, h)
    return jax.make_jaxpr(step)(jax.random.key(0), *jax.tree.leaves(state))


def step_of_leaves(sampler: Sampler, state: State, estimator: Estimator, h: float) -> Callable[..., list[ArrayLike]]:
    """A step from a key and the leaves of states like `state` to the leaves of the next one."""
    structure = jax.tree.structure(state)
    return lambda key, *held: jax.tree.leaves(sampler.step(key, jax.tree.unflatten(structure, held), h, estimator))


def made_from(program: core.Jaxpr, places: Iterable[int]) -> list[bool]:
    """For each input of a program whether the outputs at some places are made from it."""
    asked = set(places)
    return dce_jaxpr(program, [i in asked for i in range(len(program.outvars))])[1]


def with_leaves(state: State, values: Mapping[int, ArrayLike]) -> State:
    """The state with other leaves at some places; a Python integer stays one."""
    leaves, structure = jax.tree.flatten(state)
    for i, value in values.items():
        plain = isinstance(leaves[i], int) and isinstance(value, int | np.ndarray | np.generic)
        leaves[i] = type(leaves[i])(value) if plain else value
    return jax.tree.unflatten(structure, leaves)


def is_count(leaf: ArrayLike) -> bool:
    """True for one whole number that is no key."""
    whole = jnp.issubdtype(jnp.result_type(leaf), jnp.integer)
    return bool(whole and np.size(leaf) == 1 and not is_key(leaf))


def _read_on_host(
    sampler: Sampler,
    start: State,
    estimator: Estimator,
    h: float,
    others: list[int],
    make_key: Callable[[int], Key],
    places: tuple[int, ...],
) -> set[int]:
    """Those of some places that a later position depends on, by steps from states with other values.

    What changes itself alone is a record, and so is what only records depend on. What enters a chance shows where it is
    so far off that no coin has a choice.
    """
    states = [start]
    for i in range(LIVED):
        states.append(_stepped(sampler, make_key(1 + i), states[-1], h, estimator))
    runs = [(100 + make, state) for make in range(MANY_KEYS) for state in (states[0], states[-1])]
    ends: dict[int, list[ArrayLike]] = {}
    # the same few runs at each of the changes, then more: what enters a chance shows at the largest ones at once
    rest = [(OFFSETS[0], range(i, i + KEYS)) for i in range(KEYS, len(runs), KEYS)]
    rounds = [(offset, range(KEYS)) for offset in OFFSETS]
    rounds += rest + [(offset, range(KEYS, 2 * KEYS)) for offset in OFFSETS[1:]]
    read, moves = set(places), {place: set[int]() for place in others}

    def moved_by(place: int, offset: float, part: range) -> set[int]:
        """The other places of the next state that depend on a place, until one of them is read."""
        found: set[int] = set()
        for i in part:
            number, state = runs[i]
            if i not in ends:
                ends[i] = jax.tree.leaves(_stepped(sampler, make_key(number), state, h, estimator))
            value = np.asarray(jax.tree.leaves(state)[place])
            moved = with_leaves(state, {place: np.asarray(value + offset * (1 + abs(value)), value.dtype)})
            try:
                after = _stepped(sampler, make_key(number), moved, h, estimator)
            except Exception:  # whatever it raises, the number that it cannot do with is read
                return set(places)
            pairs = enumerate(zip(ends[i], jax.tree.leaves(after), strict=True))
            found |= {j for j, (a, b) in pairs if j != place and not (is_key(a) or np.array_equal(a, b))}
            if not found.isdisjoint(read):
                break
        return found

    for offset, part in rounds:
        for place in others:
            if place not in read:
                moves[place] |= moved_by(place, offset, part)
                while more := {i for i in others if i not in read and not moves[i].isdisjoint(read)}:
                    read |= more
        if read.issuperset(others):
            break
    return read - set(places)


def _moving_on_host(
    sampler: Sampler, start: State, estimator: Estimator, h: float, places: set[int], make_key: Callable[[int], Key]
) -> set[int]:
    """Those of some places whose leaves change along a run, or with where it begins: the others are constants.

    Where `init` at another position or a step raises, none is known to be one.
    """
    running, first = aside(sampler), jax.tree.leaves(start)
    here = sampler.position(start)
    there = jax.tree.map(lambda leaf: np.asarray(1.1 * leaf + 0.1, np.asarray(leaf).dtype), here)

    def pairs() -> Iterator[tuple[list[ArrayLike], list[ArrayLike]]]:
        """Leaves of states of one start: at two positions, of the same draws, and along a run."""
        at = lambda x: jax.tree.leaves(running.init(make_key(1000), copied(x), estimator))
        yield at(here), at(there)
        state = start
        for i in range(FOLLOWED):
            state = running.step(make_key(1001 + i), copied(state), h, estimator)
            yield first, jax.tree.leaves(state)

    still = set(places)
    try:
        for one, other in pairs():
            still = {i for i in still if np.array_equal(one[i], other[i])}
            if not still:
                break
    except Exception:  # of another author
        return places
    return places - still


def _stepped(sampler: Sampler, key: Key, state: State, h: float, estimator: Estimator) -> State:
    """A step of a host sampler, which may write to its state and count its calls, without a trace of it."""
    return aside(sampler).step(key, copied(state), h, estimator)


def aside(sampler: Sampler) -> Sampler:
    """A copy whose steps leave the sampler's own attributes as they are, so that what they count is still to come."""
    try:
        return copied(sampler)
    except (TypeError, ValueError, RuntimeError, AttributeError):  # it holds what has no copy, such as a file or lock
        return sampler


def _needed(sampler: Sampler, start: State, traced: core.Jaxpr, places: tuple[int, ...] | None) -> set[int]:
    """Places that a later position depends on, but for constants and clocks."""
    leaves, structure = jax.tree.flatten(start)
    inputs = lambda outputs: made_from(traced, outputs)
    if places is None:
        read = jax.make_jaxpr(lambda *s: jax.tree.leaves(sampler.position(jax.tree.unflatten(structure, s))))(*leaves)
        places = tuple(np.flatnonzero(dce_jaxpr(read.jaxpr, [True] * len(read.jaxpr.outvars))[1]).tolist())

    def closure(first: set[int]) -> tuple[set[int], bool]:
        """All places that later values of these depend on, and whether the key is among what they depend on."""
        found, keyed = set(first), False
        while True:
            used = inputs(found)
            grown = found | {i for i, u in enumerate(used[1:]) if u}
            keyed = keyed or bool(used[0])
            if grown == found:
                return found, keyed
            found = grown

    needed, _ = closure(set(places))
    moving = set(places) or needed
    by_themselves = set()
    for i in needed - set(places):
        sources, keyed = closure({i})
        # what a key of the state draws is as random as what the key of a step does
        keyed = keyed or any(is_key(leaves[j]) for j in sources)
        if not keyed and not sources & moving:
            by_themselves.add(i)
    return needed - by_themselves


class _Calls(NamedTuple):
    """Calls of a sampler with draws by numbers: number, position -> state; number, state, h -> state; and a key."""

    init: Callable[[int, Position], State]
    step: Callable[[int, State, float], State]
    key: Key


def _calls(sampler: Sampler, estimator: Estimator, make_key: Callable[[int], Key], compiled: Compiler) -> _Calls:
    step = lambda key, state, h: sampler.step(key, state, h, estimator)
    init = lambda key, position: sampler.init(key, position, estimator)
    if not on_host(sampler):
        step, init = compiled(step), compiled(init)
    return _Calls(
        lambda i, x: init(make_key(100 + i), x), lambda i, state, h: step(make_key(1 + i), state, h), make_key(0)
    )


def _visited(start: State, h: float, calls: _Calls) -> Iterator[tuple[int, State]]:
    """The states of two short runs, at the smaller and the larger step size, each with the number of its step."""
    for size in STEP_SIZES:
        state = start
        for i in range(STEPS):
            state = calls.step(i, state, size * h)
            yield i, state


def _caches(
    sampler: Sampler,
    start: State,
    estimator: Estimator,
    h: float,
    others: list[int],
    places: tuple[int, ...],
    calls: _Calls,
) -> list[int]:
    """Those of the leaves that `init` makes from the position of a state that has moved."""
    kept = set(others)
    for i, state in _visited(start, h, calls):
        ours = jax.tree.leaves(state)
        if not all(np.all(np.isfinite(ours[j])) for j in kept):
            continue  # a run that diverges tells nothing
        anew = jax.tree.leaves(calls.init(i, sampler.position(state)))
        kept = {j for j in kept if _equal(ours[j], anew[j])}
        if not kept:
            return []
    leaves = jax.tree.leaves(start)
    copied = any(np.array_equal(leaves[i], leaves[j]) for i in places for j in kept)
    if copied and not on_host(sampler):
        kept &= _follow(sampler, start, estimator, STEP_SIZES[1] * h, sorted(kept), calls.key)
    return sorted(kept)


def _follow(sampler: Sampler, start: State, estimator: Estimator, h: float, places: list[int], key: Key) -> set[int]:
    """Those of the places whose leaves follow from the position all along a run of `LONG` steps of JAX."""

    def advance(n: jax.Array, carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        state, same = carry
        first, second = jax.random.split(jax.random.fold_in(key, n))
        after = sampler.step(first, state, h, estimator)
        after = jax.tree.map(lambda new, old: new if is_key(new) else jnp.asarray(new, old.dtype), after, state)
        leaves = jax.tree.leaves(after)
        anew = jax.tree.leaves(sampler.init(second, sampler.position(after), estimator))
        return after, same & jnp.stack([_near(leaves[j], anew[j]) for j in places])

    begin = jax.tree.map(jnp.asarray, start), jnp.ones(len(places), bool)
    try:
        same = jax.jit(lambda carry: jax.lax.fori_loop(0, LONG, advance, carry)[1])(begin)
    except (TypeError, jax.errors.JAXTypeError):  # init or step cannot be traced, or the state changes its form
        return set(places)
    return {j for j, follows in zip(places, np.asarray(same), strict=True) if follows}


def _near(ours: jax.Array, fresh: jax.Array) -> jax.Array:
    """`_equal`, traced; a run that diverges tells nothing."""
    tolerance = _tolerance(ours.dtype)
    return jnp.allclose(ours, fresh, rtol=tolerance, atol=tolerance) | ~jnp.all(jnp.isfinite(ours))


def _equal(ours: ArrayLike, fresh: ArrayLike) -> bool:
    a, b = np.asarray(ours), np.asarray(fresh)
    tolerance = _tolerance(a.dtype)
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


def _tolerance(dtype: np.dtype) -> float:
    """Difference of a cache that is computed again, relative and of numbers below 1."""
    return float(np.finfo(dtype).eps) ** ROUNDOFF if np.issubdtype(dtype, np.floating) else 0.0
