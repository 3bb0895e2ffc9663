"""Every reference sampler: the rows beside the samplers' code, joined family by family."""

import difflib

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.finite.entries import ENTRIES as FINITE
from sgmcmc_verification.samplers.geodesic.entries import ENTRIES as GEODESIC
from sgmcmc_verification.samplers.metropolis.entries import ENTRIES as BARKER
from sgmcmc_verification.samplers.metropolis.entries import EXACT as METROPOLIS_EXACT
from sgmcmc_verification.samplers.microcanonical.entries import ENTRIES as MICROCANONICAL
from sgmcmc_verification.samplers.microcanonical.entries import EXACT as MICROCANONICAL_EXACT
from sgmcmc_verification.samplers.overdamped.entries import ENTRIES as OVERDAMPED
from sgmcmc_verification.samplers.overdamped.entries import EXACT as OVERDAMPED_EXACT
from sgmcmc_verification.samplers.overdamped.entries import HOST as OVERDAMPED_HOST
from sgmcmc_verification.samplers.overdamped.entries import PRECONDITIONED as OVERDAMPED_PRECONDITIONED
from sgmcmc_verification.samplers.overdamped.entries import VARIANCE_REDUCED as OVERDAMPED_VARIANCE_REDUCED
from sgmcmc_verification.samplers.particles.entries import ENTRIES as PARTICLES
from sgmcmc_verification.samplers.positive.entries import ENTRIES as POSITIVE
from sgmcmc_verification.samplers.riemannian.entries import ENTRIES as RIEMANNIAN
from sgmcmc_verification.samplers.riemannian.entries import EXACT as RIEMANNIAN_EXACT
from sgmcmc_verification.samplers.riemannian.entries import RECIPES as RIEMANNIAN_RECIPES
from sgmcmc_verification.samplers.thermostats.entries import ENTRIES as THERMOSTATS
from sgmcmc_verification.samplers.underdamped.entries import ENTRIES as UNDERDAMPED
from sgmcmc_verification.samplers.underdamped.entries import EXACT as UNDERDAMPED_EXACT

SAMPLERS: tuple[Row, ...] = (
    *OVERDAMPED,
    *BARKER,
    *UNDERDAMPED,
    *THERMOSTATS,
    *MICROCANONICAL,
    *RIEMANNIAN,
    # exact
    *UNDERDAMPED_EXACT,
    *OVERDAMPED_EXACT,
    *RIEMANNIAN_EXACT,
    *METROPOLIS_EXACT,
    *MICROCANONICAL_EXACT,
    # from H, D and Q alone
    *RIEMANNIAN_RECIPES,
    # preconditioned: a constant matrix, a function of the position, the Fisher information that the noise tells
    *OVERDAMPED_PRECONDITIONED,
    # an estimator with a memory; all data in every batch make it exact, which is what the noise-free checks ask of it
    *OVERDAMPED_VARIANCE_REDUCED,
    # the first is conditionally conjugate: it reads counts, not gradients
    *POSITIVE,
    *GEODESIC,
    *PARTICLES,
    # on finite sets of states
    *FINITE,
    # another framework's way
    *OVERDAMPED_HOST,
)
"""The rows, in the order in which they are run."""


def sampler_row(name: str) -> Row:
    """The row of a reference sampler. Raises KeyError with the closest names."""
    for row in SAMPLERS:
        if row.name == name:
            return row
    near = difflib.get_close_matches(name, [row.name for row in SAMPLERS], n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(map(repr, near))}?" if near else "see SAMPLERS for the names"
    raise KeyError(f"no sampler named {name!r}; {hint}")
