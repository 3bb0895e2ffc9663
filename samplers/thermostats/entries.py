"""Rows of the thermostats."""

from sgmcmc_verification.samplers.thermostats.badodab import ENTRIES as BADODAB
from sgmcmc_verification.samplers.thermostats.msgnht import ENTRIES as MSGNHT
from sgmcmc_verification.samplers.thermostats.sgnht import ENTRIES as SGNHT

ENTRIES = (*SGNHT, *MSGNHT, *BADODAB)
