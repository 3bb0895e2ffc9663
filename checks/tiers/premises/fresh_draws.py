"""The draws of a step are new and independent: each consumes a key of its own, which follows from the step's key."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, statement
from sgmcmc_verification.checks.core.finding import Finding, Tolerance
from sgmcmc_verification.checks.core.noisy_gradient import with_noise
from sgmcmc_verification.checks.core.obligations import KNOWN_DRAWS
from sgmcmc_verification.checks.core.selection import informative, structured_targets, wide
from sgmcmc_verification.checks.core.start_position import start_position, start_state
from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.tracing.key_lineage import Consumed, consumed_keys
from sgmcmc_verification.checks.tracing.live_leaves import live_leaves
from sgmcmc_verification.checks.tracing.stream_counts import stream_counts
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.whole_state import fresh_key, is_key, key_words

BITS = [(0, 1 << bit) for bit in range(32)] + [(1 << bit, 0) for bit in range(32)]
WORDS = ((0, 0), (0, 3), (1, 1), *BITS)
"""Raw keys of steps that differ by one bit, each of all, by one and by a word, as counters and seeds make them."""
FEW = 16
"""Draws of one key up to which all pairs of them are looked at."""
STEPS = 1024
"""Steps along which a key of the state must not come back."""


def _targets(subject: Subject) -> tuple[str, ...]:
    names = informative(subject)[-1:]
    return names if subject.options else tuple(dict.fromkeys((*names, *structured_targets(subject), *wide(subject))))


@statement(
    tier="contract",
    equation="each draw of a step consumes a key of its own, a function of the key of the step that never repeats",
    targets=_targets,
    cost=0.5,
    decides="dynamics",
    meets=lambda target: (KNOWN_DRAWS,),
    about=("constant-key",),
    finite=None,
)
def fresh_draws(case: Case) -> Finding:
    """No two draws of a step, of two steps, or of `init` and a step consume the same key: without sampling.

    The raw words of the keys of all draws are evaluated for keys of steps that differ by a bit, by one, by a word, and
    as `split` and `fold_in` make them, in the second step of a run. Draws of equal keys are the same numbers, and the
    laws that take them as independent are those of another kernel. A key that the state holds stands for the key of
    the step; along a run it has to change, and lead to new keys, each time. An exact gradient draws nothing; a noisy
    one shows whether the key that it is given changes.
    """
    sampler, estimator = case.subject.sampler(case.target), case.subject.estimator(case.target)
    if on_host(sampler):
        raise NotApplicable("a host sampler draws from a generator, which has no keys")
    position, h = start_position(sampler, case.target), case.step_size
    keys = evaluated(_keys)(np.array(WORDS, np.uint64).astype(np.uint32))
    first = start_state(sampler, jax.random.key(7), position, estimator)
    move = jax.jit(lambda key, state: sampler.step(key, state, h, estimator))
    stored = [i for i, leaf in enumerate(jax.tree.leaves(first)) if is_key(leaf)]
    if stored:  # a key that no draw consumes may stay as it is
        read = live_leaves(sampler, first, estimator, h)
        stored = [i for i in stored if read[i]]
    # after a step the keys of a state are others, and nothing else of it matters here
    state = move(jax.random.key(8), first) if stored else first
    step = lambda key: sampler.step(key, _with_keys(state, key), h, estimator)
    calls, unfollowed = consumed_keys(step, keys)
    initial, _ = consumed_keys(lambda key: sampler.init(key, position, estimator), jax.random.key(7)[None])
    found = repeated(calls, initial)
    found = found or _constant_noise(case, keys)
    if stored and not found:
        found = _stored(move, state, stored, stream_counts(sampler, state, estimator, h))
    if not found and unfollowed:
        raise Inconclusive(f"the keys of draws inside of {', '.join(unfollowed)} cannot be followed")
    draws = sum(call.words.shape[1] for call in calls)
    return Finding(
        effect=float(len(found)),
        tolerance=Tolerance.identity(),
        minimum_detectable_effect=1.0,
        required_sensitivity=1.0,
        reason="; ".join(found) or f"{draws} draws a step consume keys of their own, for {len(keys)} keys of a step",
        statistic="keys that are consumed twice",
        unit="draws",
        step_size=h,
        measurements={"draws": draws},
    )


def _keys(raw: jax.Array) -> jax.Array:
    """Keys of these words, and of two parents: `split` and `fold_in` of one make the same keys."""
    folded = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(6), i))(jnp.arange(4))
    return jnp.concatenate([jax.random.wrap_key_data(raw), jax.random.split(jax.random.key(5), 4), folded])


def _constant_noise(case: Case, keys: jax.Array) -> list[str]:
    """A line if the noise of gradients, where the sampler can be given some, is that of the same key in every step."""
    noisy = with_noise(case.subject, case.target)
    if case.subject.options or noisy.row.estimator is case.subject.row.estimator:
        return []
    sampler, estimator = noisy.sampler(case.target), noisy.estimator(case.target)
    state = start_state(sampler, jax.random.key(7), start_position(sampler, case.target), estimator)
    step = lambda key: sampler.step(key, _with_keys(state, key), case.step_size, estimator)
    constant = [c for c in consumed_keys(step, keys)[0] if np.all(c.words == c.words[:1])]
    return [f"the noise of the gradient, {c.name} {c.place}, has the same key in every step" for c in constant]


def _with_keys(state: Any, key: jax.Array) -> Any:
    """The state with the keys that it holds made from `key`."""
    return jax.tree.map(lambda leaf: fresh_key(jax.random.fold_in(key, 731), leaf) if is_key(leaf) else leaf, state)


def _stored(move: Callable[[Any, Any], Any], state: Any, stored: list[int], streams: frozenset[int]) -> list[str]:
    """A line for each key of the state that comes back along a run, or is never changed.

    With counts that enter keys alone (`streams`) a seed may stay: `closed_state` asks whether they lead to new keys.
    """
    seen: dict[int, list[bytes]] = {i: [] for i in stored}
    for step in range(STEPS):
        leaves = jax.tree.leaves(state)
        counted = b"".join(np.asarray(leaves[i]).tobytes() for i in sorted(streams))
        for i in stored:
            seen[i].append(np.asarray(key_words(leaves[i])).tobytes() + counted)
        state = move(jax.random.fold_in(jax.random.key(9), step), state)
    return [f"the key in leaf {i} of the state comes back" for i in stored if len(set(seen[i])) < STEPS]


def repeated(calls: list[Consumed], initial: list[Consumed]) -> list[str]:
    """A line for each pair of draws of the same key: within a step, of two steps, of init and a step."""
    name = lambda i: f"the {calls[i].name} draw {calls[i].place}".rstrip()
    steps = len(calls[0].words) if calls else 0
    rows = [(call.words[step], step, i) for i, call in enumerate(calls) for step in range(steps)]
    rows += [(call.words.reshape(-1, call.words.shape[-1]), -1, -1) for call in initial]
    if not rows:
        return []
    words = np.concatenate([w for w, _, _ in rows])
    of_step = np.concatenate([np.full(len(w), step) for w, step, _ in rows])
    of_call = np.concatenate([np.full(len(w), i) for w, _, i in rows])
    of_draw = np.concatenate([np.arange(len(w)) for w, _, _ in rows])
    order = np.lexsort((of_draw, of_call, of_step, *words.T))
    found: dict[str, None] = {}
    for k, m in _pairs(words[order], order):
        (a, i, p), (b, j, q) = (tuple(int(of[x]) for of in (of_step, of_call, of_draw)) for x in (k, m))
        if i < 0 or j < 0:
            if max(i, j) >= 0:
                found[f"{name(max(i, j))} consumes a key that init consumes already"] = None
        elif a != b and (i, p) == (j, q):
            found[f"{name(j)} is the same for different keys of the step"] = None
        elif a != b:
            found[f"{name(j)} is that of {name(i)} in another step"] = None
        elif calls[i].excludes(calls[j]):
            continue  # one of them is made at most
        elif i == j:
            found[f"{name(j)} is repeated for several coordinates"] = None
        else:
            found[f"{name(j)} consumes the key of {name(i)}"] = None
    return list(found)


def _pairs(words: np.ndarray, order: np.ndarray) -> Iterator[tuple[int, int]]:
    """All pairs of the same words among sorted ones (N, w); of many of the same, neighbours."""
    starts = np.flatnonzero(np.append(True, np.any(words[1:] != words[:-1], axis=1)))
    for first, end in itertools.pairwise((*starts, len(words))):
        group = order[first:end].tolist()
        yield from itertools.combinations(group, 2) if len(group) <= FEW else itertools.pairwise(group)
