"""Every planted bug, one row each."""

from sgmcmc_verification.checks.faults import (
    amagold,
    contour,
    cyclical,
    dp_mixture,
    estimators,
    exchange,
    finite,
    geometry,
    lda,
    metropolis,
    overdamped,
    particles,
    parts,
    positive,
    preconditioned,
    premises,
    riemannian,
    sam,
    splitting,
    streams,
    thermostats,
    underdamped,
)
from sgmcmc_verification.checks.faults.fault import Defect

DEFECTS: tuple[Defect, ...] = (
    *overdamped.DEFECTS,
    *underdamped.DEFECTS,
    *cyclical.DEFECTS,
    *splitting.DEFECTS,
    *metropolis.DEFECTS,
    *exchange.DEFECTS,
    *contour.DEFECTS,
    *amagold.DEFECTS,
    *riemannian.DEFECTS,
    *thermostats.DEFECTS,
    *particles.DEFECTS,
    *parts.DEFECTS,
    *streams.DEFECTS,
    *premises.DEFECTS,
    *estimators.DEFECTS,
    *preconditioned.DEFECTS,
    *geometry.DEFECTS,
    *positive.DEFECTS,
    *lda.DEFECTS,
    *dp_mixture.DEFECTS,
    *sam.DEFECTS,
    *finite.DEFECTS,
)
"""The rows, family by family."""


def find_defect(name: str) -> Defect:
    """The planted bug of a name. Raises KeyError."""
    for row in DEFECTS:
        if row.name == name:
            return row
    raise KeyError(f"no planted bug named {name!r}; see sgmcmc_verification.checks.faults.registry.DEFECTS")
