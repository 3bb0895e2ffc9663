"""Rows of the samplers with a metric that depends on the position."""

from sgmcmc_verification.samplers.riemannian.euler import ENTRIES as EULER
from sgmcmc_verification.samplers.riemannian.mmala import ENTRIES as MMALA
from sgmcmc_verification.samplers.riemannian.rmhmc import ENTRIES as RMHMC
from sgmcmc_verification.samplers.riemannian.sgrhmc import ENTRIES as SGRHMC
from sgmcmc_verification.samplers.riemannian.sgrhmc import OTHER_METRICS as SGRHMC_OTHER_METRICS
from sgmcmc_verification.samplers.riemannian.sgrld import ENTRIES as SGRLD
from sgmcmc_verification.samplers.riemannian.sgrld import REFLECTED as SGRLD_REFLECTED

ENTRIES = (*SGRLD, *SGRHMC, *SGRLD_REFLECTED, *SGRHMC_OTHER_METRICS)
EXACT = (*MMALA, *RMHMC)
RECIPES = EULER
