"""Constraints and laws on manifolds."""

from checks.core.check import Check
from checks.tiers.geometry.constraints import geodesic_flow, noise_is_tangent, stays_on_the_manifold
from checks.tiers.geometry.manifold_law import (
    closed_form_marginals,
    intrinsic_dimension,
    kinetic_energy,
    manifold_limit,
    riemannian_stein_discrepancy,
)

CHECKS: tuple[Check, ...] = (
    manifold_limit,
    kinetic_energy,
    stays_on_the_manifold,
    geodesic_flow,
    noise_is_tangent,
    intrinsic_dimension,
    closed_form_marginals,
    riemannian_stein_discrepancy,
)
