"""The outcome of one statement about a step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sgmcmc_verification.checks.proof.errors import NotReal
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.zero import RANKS, Status, numerical_status, status

Outcome = Literal["proved", "verified", "undecided", "violated"]
OUTCOMES: tuple[Outcome, ...] = ("proved", "verified", "undecided", "violated")
_OF_STATUS: dict[Status, Outcome] = {
    "proved": "proved",
    "verified": "verified",
    "round-off": "verified",
    "single": "undecided",
    "nonzero": "violated",
}


@dataclass(frozen=True)
class Result:
    """The finding on one statement.

    Attributes:
        statement: its name.
        equation: what has to vanish.
        outcome: `proved` for every smooth potential, `verified` to 50 digits at random points (or to the round-off of
            the program's own constants), `undecided`, or `violated`.
        reason: why it is undecided, or what is wrong.
        polynomial: the first one that is not zero, in words.
        region: the part of the state space that it is about, with file and line of the branch; empty for all of it.
        setting: the positions that it was asked for, such as `d = 2`.
    """

    statement: str
    equation: str
    outcome: Outcome
    reason: str = ""
    polynomial: str = ""
    region: tuple[str, ...] = ()
    setting: str = ""

    @property
    def holds(self) -> bool:
        """True if it is proved or verified."""
        return self.outcome in ("proved", "verified")


def of_polynomials(
    statement: str, equation: str, named: Iterable[tuple[str, Polynomial]], region: Sequence[str] = ()
) -> Result:
    """The result for an equation that says that polynomials are zero; each has a name for readers."""
    worst: Status = "proved"
    first, label = "", ""
    for name, p in named:
        try:
            # where one is verified only, that the next is proved would make no difference
            found = status(p) if worst == "proved" else numerical_status(p)
        except NotReal:
            where = tuple(region)
            return Result(statement, equation, "undecided", f"no real point of {name} was found", region=where)
        if RANKS.index(found) > RANKS.index(worst):
            worst = found
            first, label = ("", "") if found in ("verified", "round-off") else (p.text(), name)
    outcome = _OF_STATUS[worst]
    reasons = {
        "single": f"{label} is as small as a constant rounded to single precision",
        "nonzero": f"{label} is not zero",
        "round-off": "up to the round-off of the constants of the program",
    }
    return Result(statement, equation, outcome, reasons.get(worst, ""), first, tuple(region))


def power_of_step(k: int) -> str:
    """The power of h at s^k, for readers."""
    return str(Fraction(k, 2))
