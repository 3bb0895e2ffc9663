"""Rows of the samplers of microcanonical dynamics."""

from sgmcmc_verification.samplers.microcanonical.mams import ENTRIES as MAMS
from sgmcmc_verification.samplers.microcanonical.mclmc import ENTRIES as MCLMC

ENTRIES, EXACT = MCLMC, MAMS
