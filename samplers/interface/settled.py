"""Samplers that are different at the start: a step size that warms up, a temperature that falls, a descent at first.

What counts the steps of a run makes each of the first ones a kernel of its own. Where the later ones are one kernel for
ever, it is the one whose law is claimed, and the start is forgotten: `init` is made to begin with such a count. A count
that matters for ever is left as it is, and is found by what asks for the law.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.interpreters.partial_eval import dce_jaxpr
from jax.typing import ArrayLike

from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimator
from sgmcmc_verification.samplers.interface.trees import Key, Position, State
from sgmcmc_verification.samplers.interface.whole_state import (
    Programs,
    closed_step,
    is_count,
    is_key,
    made_from,
    with_leaves,
)

Values = dict[int, ArrayLike]
"""Places of leaves -> their values."""
LIVED, ON_HOST = (1_000, 50_001), (1_000, 1_603)
"""Steps after which a sampler is one kernel for ever, and those up to which it is looked at."""
BETWEEN = (*range(1, 18), *(int(30_000 * (n * 0.6180339887 % 1)) for n in range(1, 112)))
"""Steps after the first of them at which it is looked at too."""
FAR = 5_000
"""Increment of the counts of a host sampler that tells whether they matter at all."""
KEYS = 4
"""Keys under which steps are compared: a step that rejects shows nothing."""
SAME = 1e-12
"""Relative gap of steps that are one kernel."""


def settled(
    sampler: Completed,
    start: State,
    estimator: Estimator,
    h: float,
    make_key: Callable[[int], Key],
    programs: Programs | None = None,
) -> Values:
    """Places of leaves of a state that count, and their values past the start; {} if nothing settles.

    Args:
        sampler: any.
        start: a state that its `init` has made, at a position in the bulk.
        estimator: of its gradients.
        h: step size.
        make_key: number -> key, or generator of a host sampler.
        programs: of the sampler, its step of this size; None to trace it.
    """
    leaves = jax.tree.leaves(start)
    if on_host(sampler):
        return _on_host(sampler, start, estimator, h, make_key)
    few = [i for i, leaf in enumerate(leaves) if np.size(leaf) == 1 and not is_key(leaf)]
    if not few or len(leaves) == 1:
        return {}
    program = programs.traced(make_key(0), start) if programs else closed_step(sampler, start, estimator, h)
    clocks = [i for i in few if _by_itself(program, i) and _is_read(program, i, len(leaves))]
    if not clocks:
        return {}
    readings = _readings(program, leaves, clocks)
    ends = _ends(sampler, start, estimator, h, clocks, readings)
    if not _same(ends[1:], ends[1:2]) or _same(ends[:1], ends[1:2]):
        return {}
    return {i: jnp.asarray(column[-1]) for i, column in zip(clocks, readings, strict=True)}


def begins_with(sampler: Completed, values: Mapping[int, ArrayLike]) -> Completed:
    """The sampler whose `init` has these leaves."""
    init = sampler.init

    def init_with(key: Key, position: Position, estimator: Estimator) -> State:
        return with_leaves(init(key, position, estimator), values)

    return dataclasses.replace(sampler, init=init_with)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.all(np.abs(a - b) <= SAME * (np.abs(b) + np.abs(b).max(initial=0.0))))


def _by_itself(program: core.ClosedJaxpr, place: int) -> bool:
    """True for a leaf that a step changes, and whose later values depend on it alone."""
    changed = program.jaxpr.outvars[place] is not program.jaxpr.invars[place + 1]
    return changed and not any(u and i != place + 1 for i, u in enumerate(made_from(program.jaxpr, [place])))


def _is_read(program: core.ClosedJaxpr, place: int, count: int) -> bool:
    """True for a leaf that other leaves of the next state are made from."""
    return made_from(program.jaxpr, [i for i in range(count) if i != place])[place + 1]


def _readings(program: core.ClosedJaxpr, leaves: Sequence[ArrayLike], clocks: list[int]) -> list[np.ndarray]:
    """The values of each clock at the start, at the first of `LIVED`, after it, and at the second."""
    used, kept = dce_jaxpr(program.jaxpr, [i in clocks for i in range(len(leaves))])
    inputs = [i for i, u in enumerate(kept[1:]) if u]
    held_arrays = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    once = core.jaxpr_as_fun(core.ClosedJaxpr(used, [held_arrays[v] for v in used.constvars]))

    def advance(held: Values, _: None) -> tuple[Values, Values]:
        return dict(zip(clocks, once(*(held[i] for i in inputs)), strict=True)), held

    walk = jax.jit(lambda held: jax.lax.scan(advance, held, None, length=LIVED[1] + 1)[1])
    columns = walk({i: jnp.asarray(leaves[i]) for i in clocks})
    places = np.array([0, LIVED[0], *(LIVED[0] + n for n in BETWEEN), LIVED[1]])
    return [np.asarray(columns[i])[places] for i in clocks]


def _ends(
    sampler: Completed, start: State, estimator: Estimator, h: float, clocks: list[int], readings: list[np.ndarray]
) -> np.ndarray:
    """Ends of a step from the start with each reading of its clocks, (R, n), under some keys, the clocks aside."""
    keys = jax.random.split(jax.random.key(4), KEYS)

    def end(values: tuple[ArrayLike, ...], key: jax.Array) -> jax.Array:
        after = sampler.step(key, with_leaves(start, dict(zip(clocks, values, strict=True))), h, estimator)
        return jnp.asarray(_seen(sampler, after, clocks))

    many = jax.jit(jax.vmap(lambda values: jax.vmap(lambda key: end(values, key).ravel())(keys)))
    return np.asarray(many(tuple(map(jnp.asarray, readings)))).reshape(len(readings[0]), -1)


def _seen(sampler: Completed, state: State, clocks: Sequence[int]) -> jax.Array | np.ndarray:
    xp = np if on_host(sampler) else jnp
    aside = set(clocks)  # an order that is a list of numbers has one for each datum
    leaves = [leaf for i, leaf in enumerate(jax.tree.leaves(state)) if i not in aside and not is_key(leaf)]
    numbers = [leaf for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.number)]
    return xp.concatenate([xp.ravel(xp.asarray(leaf, float)) for leaf in numbers])


def _on_host(
    sampler: Completed, start: State, estimator: Estimator, h: float, make_key: Callable[[int], Key]
) -> Values:
    leaves = jax.tree.leaves(start)
    clocks = [i for i, leaf in enumerate(leaves) if is_count(leaf)]
    if not clocks or len(leaves) == 1:
        return {}

    def ends(values: Values) -> np.ndarray:
        state = with_leaves(start, values)
        after = [copied(sampler).step(make_key(7 + i), copied(state), h, estimator) for i in range(KEYS)]
        return np.concatenate([_seen(sampler, each, clocks) for each in after])

    first = ends({})
    if _same(first, ends({i: leaves[i] + FAR for i in clocks})):
        return {}
    state, walked, found = copied(start), copied(sampler), []
    for n in range(ON_HOST[1] + 1):
        if n >= ON_HOST[0] and (n - ON_HOST[0] <= 17 or n == ON_HOST[1]):
            found.append({i: copied(jax.tree.leaves(state)[i]) for i in clocks})
        state = walked.step(make_key(100 + n), state, h, estimator)
    later = [ends(values) for values in found]
    if not all(_same(each, later[0]) for each in later) or _same(first, later[0]):
        return {}
    return found[-1]
