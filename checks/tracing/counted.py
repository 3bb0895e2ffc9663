"""Counts in a state that a step reads: a place in an epoch, the age of an anchor."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.tracing.step_map import JaxStep
from sgmcmc_verification.samplers.interface.whole_state import is_key


def reads_a_count(step: JaxStep, h: float) -> bool:
    """True if a whole number of the state changes in a step, and what it is decides where the next step goes.

    A recursion in z leaves such a number at its first value: it is of one batch of an epoch, and not of the sampler.
    """
    state = jax.tree.map(jnp.asarray, step.template.state)
    leaves, structure = jax.tree.flatten(state)
    move = lambda s: step.sampler.step(jax.random.key(5), s, h, step.estimator)
    end = lambda s: np.concatenate([np.ravel(x) for x in jax.tree.leaves(step.sampler.position(move(s)))])
    counts = [i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.integer) and not is_key(x)]
    if not counts:
        return False
    after, first = jax.tree.leaves(move(state)), end(state)
    changed = [i for i in counts if not np.array_equal(after[i], leaves[i])]
    ahead = lambda i: jax.tree.unflatten(structure, [*leaves[:i], after[i], *leaves[i + 1 :]])
    return any(not np.array_equal(end(ahead(i)), first) for i in changed)
