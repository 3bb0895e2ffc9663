"""Premises: the kernel whose law is computed is the kernel that runs."""

from sgmcmc_verification.checks.tiers.premises.branches_entered import branches_entered
from sgmcmc_verification.checks.tiers.premises.bulk_reached import bulk_reached
from sgmcmc_verification.checks.tiers.premises.closed_state import closed_state
from sgmcmc_verification.checks.tiers.premises.coordinates import equal_coordinates
from sgmcmc_verification.checks.tiers.premises.data import every_datum_enters
from sgmcmc_verification.checks.tiers.premises.far_field import far_field
from sgmcmc_verification.checks.tiers.premises.fresh_draws import fresh_draws
from sgmcmc_verification.checks.tiers.premises.leaves import equal_leaves
from sgmcmc_verification.checks.tiers.premises.rest_stays import rest_stays
from sgmcmc_verification.checks.tiers.premises.same_tape import same_tape
from sgmcmc_verification.checks.tiers.premises.step_scale import step_scale

__all__ = [
    "branches_entered",
    "bulk_reached",
    "closed_state",
    "equal_coordinates",
    "equal_leaves",
    "every_datum_enters",
    "far_field",
    "fresh_draws",
    "rest_stays",
    "same_tape",
    "step_scale",
]
