"""Stationary laws under gradient noise."""

from checks.core.check import Check
from checks.tiers.noise.gradient_noise import estimator_memory, gradient_noise_end_points, minibatch_end_points

CHECKS: tuple[Check, ...] = (
    gradient_noise_end_points,
    minibatch_end_points,
    estimator_memory,
)
