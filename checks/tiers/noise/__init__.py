"""Stationary laws under gradient noise."""

from sgmcmc_verification.checks.tiers.noise.gradient_noise import (
    estimator_memory,
    gradient_noise_end_points,
    minibatch_end_points,
)

__all__ = [
    "estimator_memory",
    "gradient_noise_end_points",
    "minibatch_end_points",
]
