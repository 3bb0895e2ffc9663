"""Rows of the underdamped Langevin samplers."""

from samplers.underdamped.amagold import ENTRIES as AMAGOLD
from samplers.underdamped.cyclical_sghmc import ENTRIES as CYCLICAL_SGHMC
from samplers.underdamped.hmc import ENTRIES as HMC
from samplers.underdamped.sghmc import ENTRIES as SGHMC
from samplers.underdamped.splitting import ENTRIES as SPLITTING
from samplers.underdamped.ubu import ENTRIES as UBU

ENTRIES = (*SGHMC, *CYCLICAL_SGHMC, *SPLITTING, *UBU)
EXACT = (*HMC, *AMAGOLD)
