"""Rows of the samplers of positive coordinates."""

from samplers.positive.cir_euler import ENTRIES as CIR_EULER
from samplers.positive.exponential_ou import ENTRIES as EXPONENTIAL_OU
from samplers.positive.scir import ENTRIES as SCIR

ENTRIES = (*SCIR, *CIR_EULER, *EXPONENTIAL_OU)
