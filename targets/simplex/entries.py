"""Rows of the laws on the simplex and of its parameterisations."""

from targets.simplex.dirichlet import ENTRIES as DIRICHLET
from targets.simplex.parameterisations import ENTRIES as PARAMETERISATIONS

ENTRIES = (*DIRICHLET, *PARAMETERISATIONS)
