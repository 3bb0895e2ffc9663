"""Particle methods."""

from sgmcmc_verification.checks.tiers.particles.bandwidth import density_estimate, median_rule
from sgmcmc_verification.checks.tiers.particles.coordinates import coordinate_invariance
from sgmcmc_verification.checks.tiers.particles.flows import divergence_of_flow, gaussian_flow
from sgmcmc_verification.checks.tiers.particles.mean_field import divergence_falls, mean_field_fixed_point
from sgmcmc_verification.checks.tiers.particles.velocity import (
    kernel_velocity,
    particle_rate,
    permutation_equivariance,
    repulsion_balance,
    step_along_velocity,
    weighted_fixed_point,
)

__all__ = [
    "coordinate_invariance",
    "density_estimate",
    "divergence_falls",
    "divergence_of_flow",
    "gaussian_flow",
    "kernel_velocity",
    "mean_field_fixed_point",
    "median_rule",
    "particle_rate",
    "permutation_equivariance",
    "repulsion_balance",
    "step_along_velocity",
    "weighted_fixed_point",
]
