"""Counts of a state that lead to the keys of draws, and to nothing else: `fold_in(key, number of the step)`.

Such a count is no clock as long as it leads to new keys. Which counts these are is read off the program whose draws
are fed from a tape: the keys are dead code there, and with them what only they are made of.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.tracing.key_lineage import consumed_keys
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.whole_state import (
    fresh_key,
    is_count,
    is_key,
    key_words,
    made_from,
    step_of_leaves,
    with_leaves,
)

FIRST = 1_000
"""Readings of a count from 0 on that are looked at, and steps in which it has to grow by as many."""


def stream_counts(sampler: Sampler, state: Any, estimator: Estimator, h: float) -> frozenset[int]:
    """Places of the integers among the leaves of a state that enter keys alone; none if a draw cannot be fed.

    Args:
        sampler: that is traced.
        state: of it.
        estimator: of the gradients.
        h: step size.
    """
    leaves = jax.tree.leaves(state)
    keys = {i for i, leaf in enumerate(leaves) if is_key(leaf)}
    counts = {i for i, leaf in enumerate(leaves) if is_count(leaf)}
    if not counts:
        return frozenset()
    program = record(partial(step_of_leaves(sampler, state, estimator, h), jax.random.key(0)), *leaves)
    if program.unintercepted:
        return frozenset()
    normals, uniforms, integers = (program.count("normal"), program.count("uniform"), program.count("integer"))
    noise = Noise(jnp.zeros(normals), jnp.zeros(uniforms), jnp.zeros(integers, int))
    fed = jax.make_jaxpr(lambda *held: program(noise, *held))(*leaves).jaxpr
    alone = keys | counts
    while True:
        read = made_from(fed, [i for i in range(len(fed.outvars)) if i not in alone])
        fewer = {i for i in alone if not read[i]}
        if fewer == alone:
            return frozenset(alone & counts)
        alone = fewer


def comes_back(sampler: Sampler, state: Any, estimator: Estimator, h: float, place: int, ahead: Iterable[int]) -> bool:
    """True if a count of steps leads to one key at two readings, of steps with keys of their own.

    The place in a ring of keys is none, and the keys there are renewed.

    Args:
        sampler: that is traced.
        state: that has lived.
        estimator: of the gradients.
        h: step size.
        place: of the count among the leaves of the state.
        ahead: steps by which it is put forward; the first `FIRST` readings of all are looked at too.
    """
    leaves = jax.tree.leaves(state)
    kind, now = jnp.result_type(leaves[place]), np.asarray(leaves[place]).item()
    go_on = lambda n, s: sampler.step(jax.random.fold_in(jax.random.key(4), n), s, h, estimator)
    later = jax.tree.leaves(jax.jit(lambda s: jax.lax.fori_loop(0, FIRST, go_on, s))(state))
    if np.asarray(later[place]).item() != now + FIRST:
        return False
    changed = lambda leaf, new: not np.array_equal(key_words(leaf), key_words(new))
    renewed = [i for i, leaf in enumerate(leaves) if is_key(leaf) and changed(leaf, later[i])]
    readings = dict.fromkeys((now, *(now + n for n in ahead), *range(FIRST)))
    values = jnp.asarray([n for n in readings if n <= np.iinfo(kind).max]).astype(kind)
    keys = jax.random.split(jax.random.key(12), len(values))
    words = jax.random.key_data(keys)

    def step(key: jax.Array) -> Any:
        # the number of a key among those that are looked at says which reading is its own
        number = jnp.argmax(jnp.all(words == jax.random.key_data(key), axis=-1))
        anew = {i: fresh_key(jax.random.fold_in(key, i), leaves[i]) for i in renewed}
        held = with_leaves(state, {place: values[number].reshape(jnp.shape(leaves[place])), **anew})
        return sampler.step(key, held, h, estimator)

    calls, _ = consumed_keys(step, keys)
    return any(len(np.unique(draw, axis=0)) < len(draw) for call in calls for draw in call.words.transpose(1, 0, 2))
