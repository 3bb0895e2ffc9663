"""Rows of the overdamped Langevin samplers."""

from samplers.overdamped.contour_sgld import ENTRIES as CONTOUR_SGLD
from samplers.overdamped.control_variates import ENTRIES as CONTROL_VARIATES
from samplers.overdamped.cyclical_sgld import ENTRIES as CYCLICAL_SGLD
from samplers.overdamped.host_sgld import ENTRIES as HOST_SGLD
from samplers.overdamped.leimkuhler_matthews import ENTRIES as LEIMKUHLER_MATTHEWS
from samplers.overdamped.mala import ENTRIES as MALA
from samplers.overdamped.psgld import ENTRIES as PSGLD
from samplers.overdamped.replica_exchange import ENTRIES as REPLICA_EXCHANGE
from samplers.overdamped.saga import ENTRIES as SAGA
from samplers.overdamped.sgfs import ENTRIES as SGFS
from samplers.overdamped.sgld import ENTRIES as SGLD
from samplers.overdamped.svrg import ENTRIES as SVRG

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
