"""Rows of the underdamped Langevin samplers."""

from sgmcmc_verification.samplers.underdamped.amagold import ENTRIES as AMAGOLD
from sgmcmc_verification.samplers.underdamped.cyclical_sghmc import ENTRIES as CYCLICAL_SGHMC
from sgmcmc_verification.samplers.underdamped.hmc import ENTRIES as HMC
from sgmcmc_verification.samplers.underdamped.makla import ENTRIES as MAKLA
from sgmcmc_verification.samplers.underdamped.sghmc import ENTRIES as SGHMC
from sgmcmc_verification.samplers.underdamped.splitting import ENTRIES as SPLITTING
from sgmcmc_verification.samplers.underdamped.ubu import ENTRIES as UBU

ENTRIES = (*SGHMC, *CYCLICAL_SGHMC, *SPLITTING, *UBU)
EXACT = (*HMC, *AMAGOLD, *MAKLA)
