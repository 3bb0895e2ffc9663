"""Conclusion from all results of a sampler, for somebody who wants to use it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from checks.core.result import Result
from checks.pytest_plugin.plan import LAW_TIERS
from checks.registry import is_conduct, settles_the_law

Standing = Literal["confirmed", "in part", "fails", "undecided"]
STANDINGS: dict[Standing, str] = {
    "confirmed": "the stationary distribution that it claims, by checks without noise and by independent chains",
    "in part": "the stationary distribution that it claims, by checks of one of the two kinds alone",
    "fails": "a check of its stationary distribution; the page of its library says if that is an error or documented",
    "undecided": "no check of its stationary distribution passed, or one could not decide",
}
"""In the order of the front page, each with what it says of a sampler."""
BAD = ("fail", "error", "inconclusive")


class Conclusion(NamedTuple):
    """A sampler and what the checks say of it.

    Attributes:
        sampler: name of the row.
        standing: a key of `STANDINGS`.
        violated: (check, equation) of what fails among the checks of the law.
        interface: checks of the contract and of precision that do not pass.
        kinds: the kinds of checks, deterministic and statistical, of which one of the law passed.
    """

    sampler: str
    standing: Standing
    violated: tuple[tuple[str, str], ...]
    interface: tuple[str, ...]
    kinds: tuple[str, ...]


def decides_the_law(result: Result) -> bool:
    """True for a check that is about the law; those of the contract are about the interface."""
    return not is_conduct(result.check)


def conclude(sampler: str, results: Sequence[Result]) -> Conclusion:
    """The conclusion from all results of one row, its options included.

    A failure of any check of the law decides. It is confirmed if nothing about the law is open and a check of
    the law of each kind passed, as for the overall verdict of `pytest checks`.
    """
    law = [r for r in results if decides_the_law(r)]
    rest = [r for r in results if not decides_the_law(r)]
    failing = [r for r in law if r.verdict == "fail"]
    passed = [r for r in law if r.verdict == "pass" and settles_the_law(r.check)]
    kinds = tuple(kind for kind, tiers in LAW_TIERS.items() if any(r.tier in tiers for r in passed))
    standing: Standing
    if failing:
        standing = "fails"
    elif not kinds or any(r.verdict in ("error", "inconclusive") for r in law):
        standing = "undecided"
    else:
        standing = "confirmed" if len(kinds) == len(LAW_TIERS) else "in part"
    violated = tuple(dict.fromkeys((r.check, r.equation) for r in failing))
    interface = tuple(dict.fromkeys(r.check for r in rest if r.verdict in BAD))
    return Conclusion(sampler, standing, violated, interface, kinds)
