"""Verdicts of a run of the checks as one Markdown table, from what `--report` wrote.

python -m sgmcmc_verification.reports.pages.verdict_table FILE.jsonl
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sgmcmc_verification.checks.core.result import VERDICTS
from sgmcmc_verification.reports.records.frames import frame, markdown
from sgmcmc_verification.reports.records.results import ResultsError, Run, conduct, load
from sgmcmc_verification.samplers.entry import TIERS

LETTERS = {
    "pass": "pass",
    "fail": "fail",
    "inconclusive": "inconclusive",
    "out-of-reach": "out of reach",
    "not-applicable": "n/a",
    "error": "error",
}


def table(run: Run) -> str:
    """A line per sampler: the counts of its verdicts in each tier, its law and its conduct.

    An empty cell is a tier without results: it was not run.
    """
    tiers = [t for t in TIERS if any(r.tier == t for r in run.results)]
    counts = frame(run.results).groupby(["row", "tier", "verdict"]).size().to_dict()

    def cell(row: str, tier: str) -> str:
        found = ((counts.get((row, tier, verdict)), LETTERS[verdict]) for verdict in VERDICTS)
        return ", ".join(f"{n} {letters}" for n, letters in found if n)

    rows = [
        (
            c.sampler,
            *(cell(c.sampler, tier) for tier in tiers),
            f"**{c.law_in_words()}**" + (f" (part: {part})" if (part := run.part(c.sampler)) else ""),
            conduct(c, run.by_row[c.sampler]),
        )
        for c in run.conclusions()
    ]
    return "\n".join(markdown(("sampler", *tiers, "law", "conduct"), rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of the file that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.verdict_table", description=__doc__
    )
    parser.add_argument("file", type=Path)
    try:
        print(table(load(parser.parse_args(arguments).file)))
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
