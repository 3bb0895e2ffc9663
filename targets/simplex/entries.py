"""Rows of the laws on the simplex and of its parameterisations."""

from sgmcmc_verification.targets.simplex.dirichlet import ENTRIES as DIRICHLET
from sgmcmc_verification.targets.simplex.parameterisations import ENTRIES as PARAMETERISATIONS

ENTRIES = (*DIRICHLET, *PARAMETERISATIONS)
