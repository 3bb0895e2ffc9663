"""Rows of the laws on spheres, frames and their products."""

from sgmcmc_verification.targets.directional.bingham import ENTRIES as BINGHAM
from sgmcmc_verification.targets.directional.circle_posterior import ENTRIES as CIRCLE_POSTERIOR
from sgmcmc_verification.targets.directional.matrix_langevin import ENTRIES as MATRIX_LANGEVIN
from sgmcmc_verification.targets.directional.product_laws import ENTRIES as PRODUCT_LAWS
from sgmcmc_verification.targets.directional.uniform import ENTRIES as UNIFORM
from sgmcmc_verification.targets.directional.vmf_mixture import ENTRIES as VMF_MIXTURE
from sgmcmc_verification.targets.directional.von_mises_fisher import ENTRIES as VON_MISES_FISHER

ENTRIES = (
    *UNIFORM,
    *VON_MISES_FISHER,
    *VMF_MIXTURE,
    *BINGHAM,
    *PRODUCT_LAWS,
    *MATRIX_LANGEVIN,
    *CIRCLE_POSTERIOR,
)
