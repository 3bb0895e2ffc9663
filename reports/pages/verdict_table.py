"""Verdicts of a run of the checks as one Markdown table, from what `--report` wrote.

python -m reports.pages.verdict_table FILE.jsonl
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from checks.core.result import VERDICTS
from checks.pytest_plugin.plan import make_plan
from checks.pytest_plugin.terminal import Outcome, SamplerVerdict, sampler_verdict
from reports.records.frames import frame, markdown
from reports.records.results import load, row_of
from samplers.entry import TIERS
from samplers.registry import SAMPLERS

LETTERS = {"pass": "pass", "fail": "fail", "inconclusive": "inconclusive", "not-applicable": "n/a", "error": "error"}


def read(path: Path) -> list[Outcome]:
    """Results of a file, each with the row that it belongs to. Raises ResultsError."""
    return [Outcome(row_of(result), result) for result in load(path)]


def tiers_of(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Tiers that have results."""
    return tuple(t for t in TIERS if any(o.result.tier == t for o in outcomes))


def smoothed(row: str) -> bool:
    """`Plan.smoothed` for a row of the registry of the suite; False for others, whose code a page does not load."""
    return any(row == known.name for known in SAMPLERS) and make_plan((row,)).smoothed(row)


def judged(outcomes: Sequence[Outcome]) -> list[SamplerVerdict]:
    """The overall verdict of each sampler in the tiers that it has results of."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.row, []).append(outcome)
    return [sampler_verdict(row, tiers_of(own), own, smoothed) for row, own in groups.items()]


def table(outcomes: Sequence[Outcome]) -> str:
    """A line per sampler: the counts of its verdicts in each tier, and its overall verdict.

    An empty cell is a tier without results: it was not run.
    """
    tiers = tiers_of(outcomes)
    counts = frame(o.result for o in outcomes).groupby(["row", "tier", "verdict"]).size().to_dict()

    def cell(row: str, tier: str) -> str:
        found = ((counts.get((row, tier, verdict)), LETTERS[verdict]) for verdict in VERDICTS)
        return ", ".join(f"{n} {letters}" for n, letters in found if n)

    rows = [(v.sampler, *(cell(v.sampler, tier) for tier in tiers), f"**{v.verdict}**") for v in judged(outcomes)]
    return "\n".join(markdown(("sampler", *tiers, "overall"), rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of the file that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m reports.pages.verdict_table", description=__doc__)
    parser.add_argument("file", type=Path)
    print(table(read(parser.parse_args(arguments).file)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
