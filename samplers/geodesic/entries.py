"""Rows of the samplers on manifolds."""

from samplers.geodesic.chmc import ENTRIES as CHMC
from samplers.geodesic.gmc import ENTRIES as GMC
from samplers.geodesic.gsgnht import ENTRIES as GSGNHT
from samplers.geodesic.sggmc import ENTRIES as SGGMC

ENTRIES = (*SGGMC, *GSGNHT, *GMC, *CHMC)
