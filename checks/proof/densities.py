"""Logarithms of densities of laws on the whole line, but for a constant: what a proposal that does not look back needs.

Source: johnson1994continuous.
"""

from fractions import Fraction

from sgmcmc_verification.checks.proof.functions import Applied, absolute, exponential
from sgmcmc_verification.checks.proof.laws import Gumbel, Laplace, Law, Logistic, Normal, StudentT
from sgmcmc_verification.checks.proof.ring import Polynomial


def log_density(law: Law, x: Polynomial) -> Polynomial | None:
    """log p(x) of a draw up to a constant; None for a law of a part of the line, or without a formula here."""
    ring = x.ring
    match law:
        case Normal():
            return (x * x).scaled(Fraction(-1, 2))
        case StudentT(freedom=freedom):
            return _log(ring.one + (x * x).scaled(1 / freedom)).scaled(-(freedom + 1) / 2)
        case Laplace():
            return -absolute(x)
        case Logistic():
            return -x - _log(ring.one + exponential(-x)).scaled(Fraction(2))
        case Gumbel():
            return -x - exponential(-x)
        case _:
            return None


def _log(p: Polynomial) -> Polynomial:
    return p.ring.generator(Applied("log", p))
