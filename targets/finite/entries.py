"""Rows of the laws on finitely many states."""

from sgmcmc_verification.targets.finite.categoricals import ENTRIES as CATEGORICALS
from sgmcmc_verification.targets.finite.ising import ENTRIES as ISING
from sgmcmc_verification.targets.finite.potts import ENTRIES as POTTS

ENTRIES = (*ISING, *POTTS, *CATEGORICALS)
