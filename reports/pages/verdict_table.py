"""The verdicts of a run of the checks as one Markdown table, from what `--report` wrote.

python -m reports.pages.verdict_table FILE.jsonl
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from checks.core.result import VERDICTS
from checks.pytest_plugin.terminal import Outcome, Verdict, overall
from reports.records.results import load, row_of
from samplers.entry import TIERS

LETTERS = {"pass": "pass", "fail": "fail", "inconclusive": "inconclusive", "not-applicable": "n/a", "error": "error"}


def read(path: Path) -> list[Outcome]:
    """The results of a file, each with the row that it belongs to. Raises ResultsError."""
    return [Outcome(row_of(result), result) for result in load(path)]


def tiers_of(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The tiers that have results."""
    return tuple(t for t in TIERS if any(o.result.tier == t for o in outcomes))


def judged(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """The overall verdict of each sampler in the tiers that it has results of, without known deviations."""
    found = []
    for row in dict.fromkeys(o.row for o in outcomes):
        own = [o for o in outcomes if o.row == row]
        plan: Any = SimpleNamespace(rows=(row,), tiers=tiers_of(own))
        found += overall(plan, own)
    return found


def table(outcomes: Sequence[Outcome]) -> str:
    """A line a sampler: the counts of its verdicts in each tier, and its overall verdict without known deviations.

    An empty cell is a tier without results: it was not run.
    """
    tiers = tiers_of(outcomes)
    lines = [f"| sampler | {' | '.join(tiers)} | overall |", f"|---|{'---|' * len(tiers)}---|"]
    for verdict in judged(outcomes):
        counts = {
            t: Counter(o.result.verdict for o in outcomes if (o.row, o.result.tier) == (verdict.sampler, t))
            for t in tiers
        }
        cells = [", ".join(f"{c[v]} {LETTERS[v]}" for v in VERDICTS if c[v]) for c in counts.values()]
        lines.append(f"| {verdict.sampler} | {' | '.join(cells)} | **{verdict.verdict}** |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m reports.pages.verdict_table", description=__doc__)
    parser.add_argument("file", type=Path)
    print(table(read(parser.parse_args(arguments).file)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
