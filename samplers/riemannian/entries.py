"""Rows of the samplers with a metric that depends on the position."""

from samplers.riemannian.euler import ENTRIES as EULER
from samplers.riemannian.mmala import ENTRIES as MMALA
from samplers.riemannian.rmhmc import ENTRIES as RMHMC
from samplers.riemannian.sgrhmc import ENTRIES as SGRHMC
from samplers.riemannian.sgrhmc import OTHER_METRICS as SGRHMC_OTHER_METRICS
from samplers.riemannian.sgrld import ENTRIES as SGRLD
from samplers.riemannian.sgrld import REFLECTED as SGRLD_REFLECTED

ENTRIES = (*SGRLD, *SGRHMC, *SGRLD_REFLECTED, *SGRHMC_OTHER_METRICS)
EXACT = (*MMALA, *RMHMC)
RECIPES = EULER
