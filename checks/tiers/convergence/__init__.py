"""Convergence from bad starts."""

from checks.core.check import Check
from checks.tiers.convergence.convergence import bad_start, kernel_stein_discrepancy, separated_modes

CHECKS: tuple[Check, ...] = (
    bad_start,
    separated_modes,
    kernel_stein_discrepancy,
)
