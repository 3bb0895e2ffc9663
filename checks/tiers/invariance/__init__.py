"""Chains started from the claimed law keep it."""

from sgmcmc_verification.checks.tiers.invariance.end_points import (
    chains_move,
    end_point_anderson_darling,
    end_point_ks,
    end_point_mmd,
    end_point_moments,
)
from sgmcmc_verification.checks.tiers.invariance.float32 import float32_law
from sgmcmc_verification.checks.tiers.invariance.law_of_runs import law_of_runs
from sgmcmc_verification.checks.tiers.invariance.law_of_states import law_of_states
from sgmcmc_verification.checks.tiers.invariance.law_of_steps import law_of_several_steps, law_of_steps
from sgmcmc_verification.checks.tiers.invariance.step_size_limit import step_size_limit
from sgmcmc_verification.checks.tiers.invariance.stream_independence import streams_independent

__all__ = [
    "chains_move",
    "end_point_anderson_darling",
    "end_point_ks",
    "end_point_mmd",
    "end_point_moments",
    "float32_law",
    "law_of_runs",
    "law_of_several_steps",
    "law_of_states",
    "law_of_steps",
    "step_size_limit",
    "streams_independent",
]
