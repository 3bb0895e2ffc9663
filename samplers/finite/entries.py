"""Rows of the samplers on finite sets of states."""

from sgmcmc_verification.samplers.finite.gibbs import ENTRIES as GIBBS
from sgmcmc_verification.samplers.finite.gibbs_with_gradients import ENTRIES as GIBBS_WITH_GRADIENTS

ENTRIES = (*GIBBS, *GIBBS_WITH_GRADIENTS)
