"""The obligations that are due from a sampler, by what it claims and where it runs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core import obligations as o
from sgmcmc_verification.checks.core.accept_step import potential_decides
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.checks.core.obligations import MANY
from sgmcmc_verification.checks.core.selection import (
    DATA,
    HIGH,
    MATRIX,
    NETWORK,
    PYTREE,
    any_dimension,
    claims_of,
    runs_on,
)
from sgmcmc_verification.checks.core.start_position import program_of_first_step
from sgmcmc_verification.checks.end_points.runs import example_state
from sgmcmc_verification.checks.programs.operations import one_program, operations_and_numbers
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw, ParticleLaw, StationaryLaw
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.target import Target

FLAT = {o.GAUSSIAN: "gaussian-correlated-2d", o.HIGH_DIMENSION: HIGH, o.LINE: "anharmonic", o.PLANE: "banana"}
"""Obligations of a sampler on R^n, each with a target on which it has to run for it to be due."""
HIGH_ON = {"sphere": "vmf-s49", "simplex": "dirichlet-fifty"}
"""Targets of fifty coordinates on other spaces, for samplers whose state is the position: a few steps decide there."""
SIZES = (4, 5, 8, 21, MANY)
"""Coordinates of a space: in the first number of them the laws are shown."""


def due(subject: Subject) -> tuple[o.Obligation, ...]:
    """The obligations that the law of a sampler has to meet, at its default options."""
    row = subject.row
    if row.is_kernel or not row.targets:
        return ()
    sampler = subject.sampler(find_target(row.targets[0]))
    host, claims = on_host(sampler), claims_of(subject)
    found = [o.CLOSED_STATE] if host else [o.CLOSED_STATE, o.KNOWN_DRAWS]
    if ParticleLaw in claims:  # all particles move at once: their branches are not followed, and named as not examined
        return (*found, o.PARTICLES)
    found += [] if host else [o.BRANCHES]
    if AdaptiveLaw in claims:
        return tuple(found[1:])  # what it learns is no part of a law at a fixed step size
    if not any_dimension(subject):
        targets = [find_target(name) for name in row.targets]
        more = (o.HIGH_DIMENSION,) if high_on_spaces(subject) else ()
        return tuple(dict.fromkeys([*found, *(each for target in targets for each in o.of_target(target)), *more]))
    found += [each for each, name in FLAT.items() if runs_on(subject, name)]
    found += [o.PYTREE] if any(runs_on(subject, name) for name in (NETWORK, MATRIX, PYTREE)) else []
    found += [o.DATA] if runs_on(subject, DATA) else []
    noisy = isinstance(claims.law, StationaryLaw) and "gradient" in sampler.needs
    if noisy and not potential_decides(subject):
        found.append(o.GRADIENT_NOISE)
    return tuple(found)


@functools.lru_cache(maxsize=64)
def high_on_spaces(subject: Subject) -> tuple[str, ...]:
    """The target of `HIGH_ON` on the one space that is claimed, if a step in fifty coordinates is another program."""
    spaces = claims_of(subject).spaces
    name = HIGH_ON.get(spaces[0]) if len(spaces) == 1 else None  # the geometry of a method for all is that of the space
    if name is None or not runs_on(subject, name) or not _position_alone(subject, find_target(name)):
        return ()
    return (name,) if _another_program(subject, spaces[0]) else ()


def _position_alone(subject: Subject, target: Target) -> bool:
    sampler = subject.sampler(target)
    z = sampler.unpack(example_state(sampler, target, subject.estimator(target)))
    return sum(np.size(leaf) for leaf in jax.tree.leaves(z)) == target.size


def _another_program(subject: Subject, space: str) -> bool:
    """True unless a step has the same operations in few and in fifty coordinates, and in them the same numbers.

    What is shown in few coordinates is then shown for fifty: arrays differ in their shapes alone. A number may be that
    of the coordinates, or a power of it, as far as all `SIZES` say.
    """

    def operations(size: int) -> list[str | float]:
        point = np.arange(2.0, size + 2)
        target = Target(
            name=f"{space}-{size}",
            manifold=Sphere(size) if space == "sphere" else Simplex(size),
            example=jnp.asarray(point / (np.linalg.norm(point) if space == "sphere" else point.sum())),
            potential=lambda x: jnp.sum(x**4),
        )
        sampler, estimator = subject.sampler(target), subject.estimator(target)
        return list(operations_and_numbers(program_of_first_step(sampler, estimator, target.example, 0.1)))

    try:
        return not one_program({size: operations(size) for size in SIZES})
    except RAISED:  # in Python there is no program to compare
        return True
