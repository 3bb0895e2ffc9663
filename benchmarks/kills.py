"""Planted bugs that the checks without noise find, and the cost of finding them.

Each bug meets the check that its row names, at the options and on the target named there. asv takes lower for better,
so what is tracked is the share of bugs that survive.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import jax

from sgmcmc_verification.checks.faults.fault import CLASSES, Defect
from sgmcmc_verification.checks.faults.registry import DEFECTS
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import default_seed, execute
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS

LEAST = 0.001
"""A rate of 0 is reported as this: asv compares ratios."""

TRIED = tuple(
    d for d in DEFECTS if d.equivalent is None and find_statement(d.killed_by.check).tier in DETERMINISTIC_TIERS
)
"""The bugs that a check without noise has to find."""


class Try(NamedTuple):
    """A bug before its check: whether that failed, as it must, and the seconds, compiling included."""

    killed: bool
    seconds: float


def tried(defects: Sequence[Defect] = TRIED) -> dict[str, Try]:
    """Put every bug before its check; in the order of checks, so that they share what is compiled."""
    jax.config.update("jax_enable_x64", True)
    found = {}
    for defect in sorted(defects, key=lambda d: (d.base, d.killed_by.check)):
        kill = defect.killed_by
        result = execute(find_statement(kill.check), defect.subject, kill.target, default_seed(defect.name))
        found[defect.name] = Try(result.verdict == "fail", result.seconds or 0.0)
    return found


def of_class(found: dict[str, Try], name: str) -> list[Try]:
    """Of all bugs that this hides."""
    return [found[d.name] for d in TRIED if name in d.classes and d.name in found]


class Kills:
    """By what hides the bug (`CLASSES`): the share that survives, and the median seconds of the check that kills."""

    params = tuple(name for name in CLASSES if any(name in d.classes for d in TRIED))
    param_names = ("hidden_by",)
    timeout = 600.0
    version = "1"
    unit = "share of bugs"

    def setup_cache(self):
        return tried()

    setup_cache.timeout = 3000  # pyright: ignore[reportFunctionMemberAccess]

    def track_survival_rate(self, found, hidden_by):
        mine = of_class(found, hidden_by)
        return max(LEAST, 1 - sum(t.killed for t in mine) / len(mine))

    def track_check_seconds(self, found, hidden_by):
        return statistics.median(t.seconds for t in of_class(found, hidden_by))

    track_check_seconds.unit = "seconds"  # pyright: ignore[reportFunctionMemberAccess]
