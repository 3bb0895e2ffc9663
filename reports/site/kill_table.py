"""Kill matrix as a table: planted bug x tier, from its lines."""

from pathlib import Path
from typing import Literal, NamedTuple

from sgmcmc_verification.reports.records.results import read_renamed
from sgmcmc_verification.samplers.entry import TIERS


class Bug(NamedTuple):
    """A planted bug.

    Attributes:
        name: of the row of `checks.faults`.
        tiers: tier -> `killed` if a statement of it failed, `run` if one was run; no entry for those that were not.
        statements: that failed, in order.
    """

    name: str
    tiers: dict[str, Literal["killed", "run"]]
    statements: tuple[str, ...]

    @property
    def killed(self) -> bool:
        """True if any statement found it."""
        return bool(self.statements)


def bugs(path: Path) -> list[Bug]:
    """Planted bugs of a file of `reports.pages.kill_matrix`, in its order."""
    tiers: dict[str, dict[str, Literal["killed", "run"]]] = {}
    statements: dict[str, dict[str, None]] = {}
    for line in read_renamed(path):
        name, tier = line["detail"]["defect"], line["tier"]
        mine = tiers.setdefault(name, {})
        statements.setdefault(name, {})
        if line["verdict"] == "fail":
            mine[tier] = "killed"
            statements[name][line["statement"]] = None
        elif line["verdict"] not in ("not-applicable", "out-of-reach"):
            mine.setdefault(tier, "run")
    return [Bug(name, found, tuple(statements[name])) for name, found in tiers.items()]


def tiers_of(found: list[Bug]) -> list[str]:
    """Tiers that were run, in order."""
    return [tier for tier in TIERS if any(tier in bug.tiers for bug in found)]
