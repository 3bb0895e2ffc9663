"""Rows of the samplers of positive coordinates."""

from sgmcmc_verification.samplers.positive.cir_euler import ENTRIES as CIR_EULER
from sgmcmc_verification.samplers.positive.exponential_ou import ENTRIES as EXPONENTIAL_OU
from sgmcmc_verification.samplers.positive.scir import ENTRIES as SCIR

ENTRIES = (*SCIR, *CIR_EULER, *EXPONENTIAL_OU)
