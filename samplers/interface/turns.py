"""Steps by the turn: a sampler whose state counts round is a Markov kernel of z once in each turn of its count.

A momentum that is drawn afresh in every tenth step, an epoch of minibatches, an anchor that is renewed: the kernel of
one step depends on where in its turn the state is, that of a whole turn does not. With steps of h / P a turn of P steps
is as long as a step of size h, and keeps the law that each of them has to keep in the end.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import ExactLaw, StationaryLaw
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, Scalar, State
from sgmcmc_verification.samplers.interface.whole_state import (
    Compiler,
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
FEW = 8
"""Steps of a turn up to which its program is written out."""
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
        clocks: places among the leaves of a state of what counts them without end.
        hands: places of what reads the same after each turn.
    """

    turn: int = 1
    clocks: tuple[int, ...] = ()
    hands: tuple[int, ...] = ()


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
        programs: of the sampler; None to trace it.
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
    h, most = 0.1 * unit, ON_HOST if on_host(sampler) else MOST
    step = _step_of(sampler, estimator, h)
    readings, lived = _readings(step, start, counts, make_key, 2 * most)
    clocks = [k for k in range(len(counts)) if _goes_by_itself(k, *readings)]
    places = tuple(counts[k] for k in clocks)
    read = [[seen[k] for k in clocks] for seen in readings[0]]
    set_to = [with_leaves(lived, dict(zip(places, values, strict=True))) for values in read]
    if not places or any(not np.array_equal(_shown(sampler, s), _shown(sampler, lived)) for s in set_to):
        return sampler  # a part of z
    ends = [[_shown(sampler, step(make_key(k), s)) for k in range(KEYS)] for s in set_to]
    turn = _period(np.asarray(ends), most)
    if turn < 2:
        return sampler
    turns = dataclasses.replace(sampler, step=_turn(sampler.step, turn, on_host(sampler)))
    found: dict[str, Any] = {field.name: getattr(turns, field.name) for field in dataclasses.fields(Completed)}
    if found_z:
        whole = whole_state(turns, start, estimator, unit, make_key, compiled)
        whole = dataclasses.replace(whole, rest=_rest(_step_of(turns, estimator, h), whole, set_to[0], make_key))
        found |= {"unpack": whole.unpack, "pack": whole.pack}
    hands = tuple(
        counts[k] for k in clocks if all(np.array_equal(a[k], b[k]) for a, b in pairwise(readings[0][::turn]))
    )
    return Turns(**found, turn=turn, clocks=tuple(i for i in places if i not in hands), hands=hands)


def _readings(
    step: Callable[[Key, State], State], start: State, counts: list[int], make_key: Callable[[int], Key], length: int
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
    """The least P up to `most` with the same ends at n and at n + P, for all n, or 0: ends (2 most, KEYS, n)."""
    if not np.all(np.isfinite(ends)):
        return 0
    size = np.abs(ends).max()
    for turn in range(1, most + 1):
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
        other = with_leaves(begun, {i: moved if on_host(whole.sampler) else jnp.asarray(moved)})
        after = [shown(step(make_key(k), other)) for k in range(KEYS)]
        same = all(np.array_equal(a, b) for x, y in zip(before, after, strict=True) for a, b in zip(x, y, strict=True))
        read += [] if same else [i]
    return tuple(read)
