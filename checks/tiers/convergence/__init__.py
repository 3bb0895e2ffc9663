"""Convergence from bad starts."""

from sgmcmc_verification.checks.tiers.convergence.convergence import (
    bad_start,
    kernel_stein_discrepancy,
    separated_modes,
)

__all__ = [
    "bad_start",
    "kernel_stein_discrepancy",
    "separated_modes",
]
