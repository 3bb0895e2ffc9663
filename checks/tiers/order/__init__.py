"""Weak order of a step."""

from sgmcmc_verification.checks.tiers.order.cir_transition import finite_time_moments, laplace_of_step
from sgmcmc_verification.checks.tiers.order.symplecticity import exact_without_force, force_keeps_volume
from sgmcmc_verification.checks.tiers.order.weak_order import defect, local_weak_order

__all__ = [
    "defect",
    "exact_without_force",
    "finite_time_moments",
    "force_keeps_volume",
    "laplace_of_step",
    "local_weak_order",
]
