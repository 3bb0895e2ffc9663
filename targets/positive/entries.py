"""Rows of the laws of positive coordinates."""

from targets.positive.gamma import ENTRIES as GAMMA
from targets.positive.log_normal import ENTRIES as LOG_NORMAL
from targets.positive.truncated_gaussian import ENTRIES as TRUNCATED_GAUSSIAN

ENTRIES = (*GAMMA, *LOG_NORMAL, *TRUNCATED_GAUSSIAN)
