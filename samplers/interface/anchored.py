"""Samplers that keep what they computed at their start: a preconditioner of the first gradient, a mode, a scale.

What `init` makes from the first position and no step changes is a constant of a run. The law that is claimed is that of
a run, whatever constant it began with; a step whose constant is made anew from each position is another kernel.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, State
from sgmcmc_verification.samplers.interface.whole_state import Compiler, Programs, made_from, traced_step

STEP_SIZE, STEPS = 0.5, 4
"""In units of one over the curvature, and steps after which the other start is, and a constant is what it was."""


def anchors(
    sampler: Sampler,
    start: State,
    estimator: Estimator,
    unit: float,
    key: Key,
    compiled: Compiler,
    programs: Programs | None = None,
) -> dict[int, ArrayLike]:
    """Places of leaves that no step changes and that follow from the first position, with those of another start.

    Args:
        sampler: any; in one that Python runs nothing is looked for.
        start: a state that its `init` has made.
        estimator: of its gradients.
        unit: one over the curvature.
        key: of `init` and steps.
        compiled: makes of `init` and `step` what is called a few times.
        programs: of the sampler; None to trace it.
    """
    leaves = jax.tree.leaves(start)
    inexact = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)]
    if on_host(sampler) or len(inexact) <= len(jax.tree.leaves(sampler.position(start))):
        return {}
    h = STEP_SIZE * unit
    program = programs.traced(key, start).jaxpr if programs else traced_step(sampler, start, estimator, h)
    alone = lambda i: not any(used for j, used in enumerate(made_from(program, [i])) if j != i + 1)
    read = lambda i: made_from(program, [j for j in range(len(leaves)) if j != i])[i + 1]
    kept = [i for i in inexact if alone(i) and read(i)]
    if not kept:
        return {}
    step = compiled(lambda key, state: sampler.step(key, state, h, estimator))
    state = start
    for n in range(STEPS):
        state = step(jax.random.fold_in(key, n), state)
    anew = compiled(lambda key, x: sampler.init(key, x, estimator))(key, sampler.position(state))
    later, others = jax.tree.leaves(state), jax.tree.leaves(anew)
    return {
        i: others[i] for i in kept if np.array_equal(leaves[i], later[i]) and not np.array_equal(leaves[i], others[i])
    }
