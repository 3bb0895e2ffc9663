"""The tier `workload`: kernels of topic and mixture models against posteriors that are enumerated or integrated."""

# the import registers the trials of their kernels
from checks.tiers.workload import dp as dp
from checks.tiers.workload import lda as lda
from checks.tiers.workload import sam as sam
from checks.tiers.workload.trial import enumerated_law, enumerated_limit, joint_distribution, unbiased_estimates

__all__ = [
    "enumerated_law",
    "enumerated_limit",
    "joint_distribution",
    "unbiased_estimates",
]
