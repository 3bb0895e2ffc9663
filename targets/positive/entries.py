"""Rows of the laws of positive coordinates."""

from sgmcmc_verification.targets.positive.gamma import ENTRIES as GAMMA
from sgmcmc_verification.targets.positive.log_normal import ENTRIES as LOG_NORMAL
from sgmcmc_verification.targets.positive.truncated_gaussian import ENTRIES as TRUNCATED_GAUSSIAN

ENTRIES = (*GAMMA, *LOG_NORMAL, *TRUNCATED_GAUSSIAN)
