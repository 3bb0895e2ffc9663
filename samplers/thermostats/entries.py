"""Rows of the thermostats."""

from samplers.thermostats.badodab import ENTRIES as BADODAB
from samplers.thermostats.msgnht import ENTRIES as MSGNHT
from samplers.thermostats.sgnht import ENTRIES as SGNHT

ENTRIES = (*SGNHT, *MSGNHT, *BADODAB)
