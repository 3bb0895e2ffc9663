"""Rows of the samplers on manifolds."""

from sgmcmc_verification.samplers.geodesic.chmc import ENTRIES as CHMC
from sgmcmc_verification.samplers.geodesic.gmc import ENTRIES as GMC
from sgmcmc_verification.samplers.geodesic.gsgnht import ENTRIES as GSGNHT
from sgmcmc_verification.samplers.geodesic.sggmc import ENTRIES as SGGMC

ENTRIES = (*SGGMC, *GSGNHT, *GMC, *CHMC)
