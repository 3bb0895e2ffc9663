"""Rows of the tier `workload`: kernels of topic and mixture models, each on posteriors that are known exactly."""

from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.topic_models.dp.enumerated import ENTRIES as DP
from sgmcmc_verification.samplers.topic_models.lda.enumerated import ENTRIES as LDA
from sgmcmc_verification.samplers.topic_models.sam.enumerated import ENTRIES as SAM

WORKLOADS: tuple[Row, ...] = (*LDA, *DP, *SAM)
"""Their targets are names of `targets.topic_models.registry`, or targets that are known by quadrature."""
