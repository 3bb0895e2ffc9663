"""Diagnosis: what is wrong with a sampler, in the terms of the one who wrote it."""

from sgmcmc_verification.checks.diagnosis.cause import FIRST_ORDER, Cause, Diagnosis, explained
from sgmcmc_verification.checks.diagnosis.diagnose import diagnose
from sgmcmc_verification.checks.diagnosis.reading import read, read_order

__all__ = ["FIRST_ORDER", "Cause", "Diagnosis", "diagnose", "explained", "read", "read_order"]
