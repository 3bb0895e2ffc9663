"""Particle methods."""

from checks.core.check import Check
from checks.tiers.particles.bandwidth import density_estimate, median_rule
from checks.tiers.particles.coordinates import coordinate_invariance
from checks.tiers.particles.flows import divergence_of_flow, gaussian_flow
from checks.tiers.particles.mean_field import divergence_falls, mean_field_fixed_point
from checks.tiers.particles.velocity import (
    kernel_velocity,
    particle_rate,
    permutation_equivariance,
    repulsion_balance,
    step_along_velocity,
    weighted_fixed_point,
)

CHECKS: tuple[Check, ...] = (
    mean_field_fixed_point,
    divergence_falls,
    weighted_fixed_point,
    kernel_velocity,
    coordinate_invariance,
    repulsion_balance,
    step_along_velocity,
    median_rule,
    density_estimate,
    permutation_equivariance,
    gaussian_flow,
    divergence_of_flow,
    particle_rate,
)
