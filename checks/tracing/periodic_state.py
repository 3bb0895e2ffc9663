"""Steps whose state has a clock, such as the age of a snapshot: one affine map for each of its readings."""

import dataclasses
from functools import lru_cache

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.tracing.noise_tape import record
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, ravel_floats
from sgmcmc_verification.samplers.interface.capabilities import PeriodicEstimator


@lru_cache(maxsize=16)
def phases(step: JaxStep | HostStep) -> tuple[JaxStep | HostStep, ...]:
    """The step at each reading of the clock of its state, in turn; the step alone if it has none.

    The first one is that of the state in which a turn begins: like that of `init`, but one turn later, because a clock
    may start from a reading that does not come back (a snapshot not used yet, for one that has to be renewed).
    The estimator says after how many steps its clock reads the same again: `period`, 1 if it has none. A clock is made
    of integers, which the affine map of a state holds fixed.
    """
    if not isinstance(step, JaxStep) or not isinstance(step.estimator, PeriodicEstimator) or step.estimator.period == 1:
        return (step,)
    period = step.estimator.period
    state, found = step.template.state, []
    # a step of size zero: the clock moves, the position stays in the bulk
    move = jax.jit(lambda s: step.sampler.step(jax.random.key(0), s, jnp.asarray(0.0), step.estimator))
    for n in range(2 * period):
        if n >= period:
            found.append(_at(step, state))
        state = move(state)
    return tuple(found)


def _at(step: JaxStep, state) -> JaxStep:
    """The step whose clock reads what it reads in `state`."""
    flat, restore = ravel_floats(state)

    def from_state(s, h):
        return ravel_floats(step.sampler.step(jax.random.key(0), restore(s), h, step.estimator))[0]

    program = record(from_state, flat, jnp.asarray(0.1, flat.dtype))
    return dataclasses.replace(step, template=step.template._replace(state=state), recursion=lambda: program)
