"""UBU and BUB: kicks and the exact force-free Langevin flow."""

from dataclasses import dataclass, field

from sgmcmc_verification.samplers.dynamics import published
from sgmcmc_verification.samplers.entry import OVERDAMPED, Row, momentum_row, plain
from sgmcmc_verification.samplers.underdamped.splitting import LangevinSplitting, Scheme


@dataclass(frozen=True)
class UBU(LangevinSplitting):
    """U(h/2) B(h) U(h/2) for underdamped Langevin dynamics, U the exact flow without force.

    Source: sanzserna2021wasserstein; options and conventions as `LangevinSplitting`.

    Error: weak order 2, strong order 2 and invariant law O(h^2), for exact gradients. On U = lambda x^2 / 2,
    lambda Var x / T = 1 - lambda h^2 / 6 + O(h^3) and Var r / T = 1 + lambda h^2 / 12 + O(h^3).
    """

    scheme: Scheme = field(default="UBU", init=False)


@dataclass(frozen=True)
class BUB(LangevinSplitting):
    """B(h/2) U(h) B(h/2) for underdamped Langevin dynamics, U the exact flow without force.

    Source: sanzserna2021wasserstein; options and conventions as `LangevinSplitting`.

    Error: weak order 2 and invariant law O(h^2), for exact gradients. On U = lambda x^2 / 2,
    lambda Var x / T = 1 + lambda h^2 / 12 + O(h^3) and Var r / T = 1 - lambda h^2 / 6 + O(h^3).
    """

    scheme: Scheme = field(default="BUB", init=False)


FRESH = {"fresh_gradients": True, **OVERDAMPED[0]}

ENTRIES: tuple[Row, ...] = (
    momentum_row("ubu", plain(UBU), OVERDAMPED, diffusion=published.UNDERDAMPED),
    momentum_row("bub", plain(BUB), (FRESH, OVERDAMPED[1]), diffusion=published.UNDERDAMPED),
)
