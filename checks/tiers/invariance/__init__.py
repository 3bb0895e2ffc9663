"""Chains started from the claimed law keep it."""

from checks.core.check import Check
from checks.tiers.invariance.end_points import (
    chains_move,
    end_point_anderson_darling,
    end_point_ks,
    end_point_mmd,
    end_point_moments,
)
from checks.tiers.invariance.float32 import float32_law
from checks.tiers.invariance.step_size_limit import step_size_limit
from checks.tiers.invariance.stream_independence import streams_independent

CHECKS: tuple[Check, ...] = (
    end_point_moments,
    end_point_ks,
    end_point_anderson_darling,
    end_point_mmd,
    step_size_limit,
    streams_independent,
    float32_law,
    chains_move,
)
