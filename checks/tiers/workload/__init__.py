"""The tier `workload`: kernels of topic and mixture models against posteriors that are enumerated or integrated."""

from sgmcmc_verification.checks.tiers.workload.trial import (
    enumerated_law,
    enumerated_limit,
    joint_distribution,
    unbiased_estimates,
)

__all__ = [
    "enumerated_law",
    "enumerated_limit",
    "joint_distribution",
    "unbiased_estimates",
]
