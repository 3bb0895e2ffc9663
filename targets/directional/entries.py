"""Rows of the laws on spheres, frames and their products."""

from targets.directional.bingham import ENTRIES as BINGHAM
from targets.directional.circle_posterior import ENTRIES as CIRCLE_POSTERIOR
from targets.directional.matrix_langevin import ENTRIES as MATRIX_LANGEVIN
from targets.directional.product_laws import ENTRIES as PRODUCT_LAWS
from targets.directional.uniform import ENTRIES as UNIFORM
from targets.directional.vmf_mixture import ENTRIES as VMF_MIXTURE
from targets.directional.von_mises_fisher import ENTRIES as VON_MISES_FISHER

ENTRIES = (
    *UNIFORM,
    *VON_MISES_FISHER,
    *VMF_MIXTURE,
    *BINGHAM,
    *PRODUCT_LAWS,
    *MATRIX_LANGEVIN,
    *CIRCLE_POSTERIOR,
)
