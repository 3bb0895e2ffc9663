"""Rows of the kernels relative to a Gaussian reference law, and of Barker's proposal."""

from sgmcmc_verification.samplers.metropolis.barker import ENTRIES as SGBD
from sgmcmc_verification.samplers.metropolis.barker import EXACT as BARKER
from sgmcmc_verification.samplers.metropolis.elliptical_slice import ENTRIES as ELLIPTICAL_SLICE
from sgmcmc_verification.samplers.metropolis.pcn import ENTRIES as PCN

ENTRIES = SGBD
EXACT = (*PCN, *ELLIPTICAL_SLICE, *BARKER)
