"""The obligations that are due from a sampler, by what it claims and where it runs."""

from sgmcmc_verification.checks.core import obligations as o
from sgmcmc_verification.checks.core.accept_step import potential_decides
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
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
from sgmcmc_verification.samplers.entry import WORKLOAD
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw, ParticleLaw, StationaryLaw

FLAT = {o.GAUSSIAN: "gaussian-correlated-2d", o.HIGH_DIMENSION: HIGH, o.LINE: "anharmonic", o.PLANE: "banana"}
"""Obligations of a sampler on R^n, each with a target on which it has to run for it to be due."""


def due(subject: Subject) -> tuple[o.Obligation, ...]:
    """The obligations that the law of a sampler has to meet, at its default options."""
    row = subject.row
    if WORKLOAD in row.tiers or not row.targets:
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
        return tuple(dict.fromkeys([*found, *(each for target in targets for each in o.of_target(target))]))
    found += [each for each, name in FLAT.items() if runs_on(subject, name)]
    found += [o.PYTREE] if any(runs_on(subject, name) for name in (NETWORK, MATRIX, PYTREE)) else []
    found += [o.DATA] if runs_on(subject, DATA) else []
    noisy = isinstance(claims.law, StationaryLaw) and "gradient" in sampler.needs
    if noisy and not potential_decides(subject):
        found.append(o.GRADIENT_NOISE)
    return tuple(found)
