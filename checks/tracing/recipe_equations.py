"""The equations of the recipe, and what a proof of one can come to."""

from typing import Literal, NamedTuple

import numpy as np

from sgmcmc_verification.checks.numerics.drift_terms import DRIFT, GAMMA

LARGEST_EXPRESSION = 2500
"""Operations beyond which an expression is not simplified but evaluated to 50 digits at rational points."""
RATIONAL_POINTS = 20
CONSTANTS = 64 * float(np.finfo(float).eps)
"""Constants of a program are float64, so that an identity between two of them holds only to their round-off."""

EQUATIONS = {
    "skew": "Q + Q^T = 0",
    "symmetric": "D - D^T = 0",
    "semidefinite": "D is positive semidefinite",
    "gamma": GAMMA,
    "drift": DRIFT,
    "residual": "Fokker-Planck residual of exp(-H) = 0",
}

Status = Literal["proved", "verified", "round-off", "violated"]


class EquationCheck(NamedTuple):
    """Outcome of the proof of one equation.

    Attributes:
        status: `proved` (SymPy), `verified` (to 50 digits at rational points, no proof), `round-off` (holds to the
            round-off of float64) or `violated`.
        effect: the worst violation, relative to the magnitudes of the terms; 0 if proved.
        words: where and by how much, if violated.
    """

    status: Status
    effect: float
    words: str = ""


_ORDER: tuple[Status, ...] = ("proved", "verified", "round-off", "violated")


def worst_of(findings: list[EquationCheck]) -> EquationCheck:
    """The worst status, and of those the largest effect."""
    if not findings:
        return EquationCheck("proved", 0.0)
    return max(findings, key=lambda f: (_ORDER.index(f.status), f.effect))
