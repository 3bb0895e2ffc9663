"""Constraints and laws on manifolds."""

from sgmcmc_verification.checks.tiers.geometry.constraints import geodesic_flow, noise_is_tangent, stays_on_the_manifold
from sgmcmc_verification.checks.tiers.geometry.manifold_law import (
    closed_form_marginals,
    intrinsic_dimension,
    kinetic_energy,
    manifold_limit,
    riemannian_stein_discrepancy,
)

__all__ = [
    "closed_form_marginals",
    "geodesic_flow",
    "intrinsic_dimension",
    "kinetic_energy",
    "manifold_limit",
    "noise_is_tangent",
    "riemannian_stein_discrepancy",
    "stays_on_the_manifold",
]
