"""Steps whose end the potential of an estimate decides, as in a Metropolis test or on a slice.

Such a kernel is exact for exact potentials. Noise in the gradient comes with noise in the potential, under which no
step size gives it the law of the target: it has nothing to show under noise.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.start_position import start_position
from sgmcmc_verification.samplers.estimators.altered import Altered
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.interface.trees import Position
from sgmcmc_verification.targets.target import Target

LEVELS = (-1e5, -1e4, -1e3, -1e2, 1e2, 1e3, 1e4, 1e5)
"""Constants by which a potential is raised."""
STEEPER = 3.0
"""Factor of the potential when it is changed; on a slice of a flat one a step would not end."""
SAME = 1e-6
"""Relative difference of two steps that are the same but for the rounding of a large potential."""
FACTORS = (1.0, 16.0)
"""Multiples of the usual step size at which it is changed: at the larger one proposals are rejected."""
FEW = 1 / 8
"""Share of the steps that a constant may change by round-off."""
KEYS, HOST_KEYS = 64, 8
"""Steps that are compared at each of them."""


def _steeper(estimate: Estimate, position: Position) -> Estimate:
    """The estimate with another potential and the same gradient."""
    del position
    assert estimate.potential is not None  # it is asked of samplers that read one
    return estimate._replace(potential=STEEPER * estimate.potential)


def tests_proposals(subject: Subject, claims: Claims) -> bool:
    """True if a step is claimed to be exact, or tests its proposals as one that may be exact does."""
    return ExactLaw in claims or potential_decides(subject)


@lru_cache(maxsize=256)
def potential_decides(subject: Subject) -> bool:
    """True if a step from the same state under the same key ends elsewhere where the potential alone is another."""
    target = find_target(subject.row.targets[0])
    sampler, exact = subject.sampler(target), subject.estimator(target)
    if "potential" not in sampler.needs:
        return False
    host = on_host(sampler)
    sizes = [factor * subject.step_size(target) for factor in FACTORS]

    def end(key: Any, estimator: Any, h: Any) -> Any:
        first, rest = (key, key) if host else jax.random.split(key)
        state = sampler.init(first, start_position(sampler, target), estimator)
        return ravel_pytree(sampler.position(sampler.step(rest, state, h, estimator)))[0]

    steeper = Altered(exact, _steeper)
    if host:
        ends = lambda estimator, h: [end(np.random.default_rng(i), estimator, h) for i in range(HOST_KEYS)]
        return any(not np.array_equal(ends(exact, h), ends(steeper, h)) for h in sizes)
    keys = jax.random.split(jax.random.key(0), KEYS)
    differ = jax.jit(lambda h: jax.vmap(lambda key: jnp.any(end(key, exact, h) != end(key, steeper, h)))(keys).any())
    return any(bool(differ(h)) for h in sizes)


def level_that_matters(subject: Subject, target: Target) -> float | None:
    """The smallest of `LEVELS` that changes steps by being added to the potential, which changes no law; None if none.

    A step that a constant of 1 changes has the level of its energy for a purpose. Of large energies round-off turns an
    acceptance now and then.
    """
    if not potential_decides(subject):
        return None
    sampler, exact = subject.sampler(target), subject.estimator(target)
    sizes = [factor * subject.step_size(target) for factor in FACTORS]
    raised_by = lambda level: Altered(
        exact, lambda estimate, _: estimate._replace(potential=estimate.potential + level)
    )
    if on_host(sampler):

        def ends(level: float) -> np.ndarray:
            raised = raised_by(level)
            keys = [np.random.default_rng(i) for i in range(HOST_KEYS)]
            runs = [(sampler.init(key, start_position(sampler, target), raised), key) for key in keys]
            steps = [sampler.step(key, copied(state), h, raised) for h in sizes for state, key in runs]
            return np.stack(
                [np.concatenate(jax.tree.leaves(jax.tree.map(np.ravel, sampler.position(s)))) for s in steps]
            )
    else:

        def end(key: jax.Array, level: jax.Array, h: jax.Array) -> jax.Array:
            first, rest = jax.random.split(key)
            raised = raised_by(level)
            state = sampler.init(first, start_position(sampler, target), raised)
            return ravel_pytree(sampler.position(sampler.step(rest, state, h, raised)))[0]

        many = jax.jit(jax.vmap(jax.vmap(end, (0, None, None)), (None, None, 0)))
        keys = jax.random.split(jax.random.key(0), KEYS)
        ends = lambda level: np.concatenate(np.asarray(many(keys, level, np.asarray(sizes))))
    usual = ends(0.0)

    def differs(level: float) -> bool:
        raised = ends(level)
        different = lambda others: ~(np.abs(raised - others).max(axis=1) <= SAME * (1 + np.abs(usual).max()))
        if np.mean(different(usual)) <= FEW:  # what is not a number is not the same
            return False
        # a start that a pilot chain makes may turn round-off, which is another one here, into another start
        return bool(np.mean(different(usual) & ~different(ends(2 * level))) > FEW)

    return None if differs(1.0) else next((c for c in sorted(LEVELS, key=abs) if differs(c)), None)
