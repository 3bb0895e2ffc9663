"""Leaves of a state that the position of a later step can depend on; the others are kept for the record only.

A running average, a norm of gradients or a count of acceptances that no step reads changes no law. Which leaves these
are is read off the program: those that dead-code elimination removes when all that is asked for is the position.
"""

from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.whole_state import is_key, made_from, traced_step


def live_leaves(sampler: Sampler, state: Any, estimator: Estimator, h: float) -> list[bool]:
    """For each leaf of the state whether some later position depends on it.

    Args:
        sampler: that is traced.
        state: of it.
        estimator: of the gradients.
        h: step size.
    """
    leaves, structure = jax.tree.flatten(state)
    jaxpr = traced_step(sampler, state, estimator, h)
    read = jax.make_jaxpr(lambda *held: jax.tree.leaves(sampler.position(jax.tree.unflatten(structure, held))))
    shown = read(*leaves).jaxpr
    live = partial_eval.dce_jaxpr(shown, [True] * len(shown.outvars))[1]
    while True:
        more = partial_eval.dce_jaxpr(jaxpr, live)[1][1:]
        both = [a or b for a, b in zip(live, more, strict=True)]
        if both == live:
            return live
        live = both


def autonomous_leaves(sampler: Sampler, state: Any, estimator: Estimator, h: float) -> list[bool]:
    """For each leaf of the state whether it goes on by itself, whatever is drawn: a count of steps, a schedule.

    Its next value depends on no key, and on no leaf whose next value does. What stays as it is is one of these.

    Args:
        sampler: that is traced.
        state: of it.
        estimator: of the gradients.
        h: step size.
    """
    jaxpr = traced_step(sampler, state, estimator, h)
    count = len(jaxpr.outvars)
    reads = np.array([made_from(jaxpr, [i]) for i in range(count)]).reshape(count, -1)
    alone = ~reads[:, 0]
    while True:
        fewer = alone & ~(reads[:, 1:] & ~alone).any(axis=1)
        if np.array_equal(fewer, alone):
            return alone.tolist()
        alone = fewer


def leaves_by_themselves(step: Any) -> list[bool]:
    """For each leaf of a state whether its next value depends on it alone, or on nothing.

    Args:
        step: a program of a key and the leaves.
    """
    own = lambda i: [k for k, read in enumerate(made_from(step, [i])) if read] in ([i + 1], [])
    return [own(i) for i in range(len(step.outvars))]


def leaves_at_rest(sampler: Sampler, state: Any, estimator: Estimator, h: float) -> list[bool]:
    """For each leaf of the state whether its next value depends on it alone, and is the same: it stays for ever.

    Args:
        sampler: that is traced.
        state: of it.
        estimator: of the gradients.
        h: step size.
    """
    leaves = jax.tree.leaves(state)
    jaxpr = traced_step(sampler, state, estimator, h)
    after = jax.tree.leaves(sampler.step(jax.random.key(0), state, h, estimator))
    alone = leaves_by_themselves(jaxpr)
    return [
        by_itself and not is_key(leaf) and np.array_equal(leaf, later)
        for by_itself, leaf, later in zip(alone, leaves, after, strict=True)
    ]
