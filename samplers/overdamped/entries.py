"""Rows of the overdamped Langevin samplers."""

from sgmcmc_verification.samplers.overdamped.contour_sgld import ENTRIES as CONTOUR_SGLD
from sgmcmc_verification.samplers.overdamped.control_variates import ENTRIES as CONTROL_VARIATES
from sgmcmc_verification.samplers.overdamped.cyclical_sgld import ENTRIES as CYCLICAL_SGLD
from sgmcmc_verification.samplers.overdamped.host_sgld import ENTRIES as HOST_SGLD
from sgmcmc_verification.samplers.overdamped.leimkuhler_matthews import ENTRIES as LEIMKUHLER_MATTHEWS
from sgmcmc_verification.samplers.overdamped.mala import ENTRIES as MALA
from sgmcmc_verification.samplers.overdamped.psgld import ENTRIES as PSGLD
from sgmcmc_verification.samplers.overdamped.replica_exchange import ENTRIES as REPLICA_EXCHANGE
from sgmcmc_verification.samplers.overdamped.saga import ENTRIES as SAGA
from sgmcmc_verification.samplers.overdamped.sgfs import ENTRIES as SGFS
from sgmcmc_verification.samplers.overdamped.sgld import ENTRIES as SGLD
from sgmcmc_verification.samplers.overdamped.svrg import ENTRIES as SVRG

ENTRIES = (
    *SGLD,
    *LEIMKUHLER_MATTHEWS,
    *CYCLICAL_SGLD,
    *REPLICA_EXCHANGE,
    *CONTOUR_SGLD,
)
EXACT = MALA
PRECONDITIONED = (*PSGLD, *SGFS)
VARIANCE_REDUCED = (*SAGA, *CONTROL_VARIATES, *SVRG)
HOST = HOST_SGLD
