"""Kinds of steps, told by tracing one: affine on a Gaussian, or with a draw that accepts or rejects a proposal."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.check import Case, Inconclusive, NotApplicable, OutOfReach
from sgmcmc_verification.checks.tracing.acceptance import decided
from sgmcmc_verification.checks.tracing.noise_tape import require_fed
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, require_traced, step_map
from sgmcmc_verification.samplers.dynamics.complete_recipe import Dynamics
from sgmcmc_verification.samplers.dynamics.embedded import EmbeddedDynamics
from sgmcmc_verification.samplers.interface.claims import ExactLaw, StochasticEquation

SIZES = 1e-3 * 2.0 ** np.arange(0, 13)
"""Step sizes of which a proposal is rejected at one at least."""
DRAWS = 8
"""Draws of the normals at each of them."""


@lru_cache(maxsize=256)
def is_affine(subject: Subject) -> bool:
    """True if a step is an affine map of state and noise on the first Gaussian target of the row."""
    for name in subject.row.targets:
        target = find_target(name)
        if target.gaussian is not None and target.terms is None:
            try:
                step_map(subject, target).affine(subject.step_size(target))
            except (NotApplicable, Inconclusive):
                return False
            return True
    return False


def dynamics_in_z(step: JaxStep | HostStep) -> Dynamics | EmbeddedDynamics:
    """The dynamics of z that a sampler declares, flat or embedded; both have `drift`, `D` and `names`.

    Raises:
        NotApplicable: if there are none.
        OutOfReach: if the numbers of z are more: the equation is one of the position, and the state remembers.
    """
    equation = step.sampler.claims.get(StochasticEquation)
    if equation is None:
        raise NotApplicable("no dynamics are declared")
    dynamics = equation.dynamics(step.target)
    if len(dynamics.names) != step.size:
        raise OutOfReach(f"the equation is one of {len(dynamics.names)} numbers, and z has {step.size}")
    return dynamics


def single_uniform(case: Case) -> None:
    """Raise OutOfReach unless a traced step draws one uniform, no integer, and all else is known: for `draws=`."""
    step = require_traced(step_map(case.subject, case.target))
    require_fed(step.program)
    if any(number > 1 for number in step.program.ranges):
        raise OutOfReach("the step draws integers: a mixture of proposals")
    if step.program.count("uniform") != 1:
        raise OutOfReach("not a Metropolis kernel: the step draws no single uniform")


def accept_or_reject(case: Case) -> None:
    """Raise NotApplicable unless the single uniform of a step accepts or rejects: for `draws=`.

    A draw is known by what it does, not by its number. One that rejects leaves the position where it was; a coin that
    gives the noise its sign, or refreshes a momentum, moves it whichever way it falls. Of a kernel that is claimed to
    be exact any single uniform will do, so that a rejection which moves the position is seen; OutOfReach without one.
    """
    if ExactLaw in case.subject.sampler(case.target).claims:
        return single_uniform(case)
    try:
        single_uniform(case)
    except OutOfReach as reason:
        raise NotApplicable(str(reason)) from None
    step = step_map(case.subject, case.target)
    assert isinstance(step, JaxStep)  # as `single_uniform` asks
    if step.exchanging:
        raise NotApplicable("the uniform of the step decides on an exchange of two chains")
    if not rejects(step):
        raise NotApplicable("the uniform of the step rejects nothing: the position moves whatever it is")
    return None


@lru_cache(maxsize=64)
def rejects(step: JaxStep) -> bool:
    """True if a step draws one uniform, of which one end leaves the position where it was and the other moves it."""
    program, size = step.program, step.target.size
    if program.count("uniform") != 1 or program.unintercepted or any(number > 1 for number in program.ranges):
        return False
    z, integers = jnp.asarray(step.template.flat), np.zeros(program.count("integer"), int)

    def moved(normals: jax.Array, h: jax.Array, share: jax.Array) -> jax.Array:
        return jnp.abs(decided(step, z, normals, integers, share, h) - z)[:size].max()

    normals = np.cos(1.3 * np.arange(DRAWS * step.noise_size).reshape(DRAWS, -1) + 0.2)
    grid = jax.jit(jax.vmap(jax.vmap(moved, (0, None, None)), (None, 0, None)))
    accepted, rejected = (np.asarray(grid(normals, np.asarray(SIZES, z.dtype), s)) for s in (0.0, 1.0))
    return bool(np.any((rejected == 0) & (accepted > 0)))


@lru_cache(maxsize=256)
def accepts(subject: Subject) -> bool:
    """True if a uniform of the step accepts or rejects a proposal, on the first target of the row."""
    try:
        accept_or_reject(Case(subject, find_target(subject.row.targets[0])))
    except NotApplicable:
        return False
    return True
