"""Conformance matrix: sampler x check, as cells of a page and as tables to export."""

import csv
import functools
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from checks.core.result import Result
from checks.registry import CHECKS
from reports.pages.compare import worst
from reports.pages.conclusion import Conclusion, conclude
from reports.records.results import load, row_of

SYMBOLS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "not-applicable": "–", "error": "!"}


@dataclass(frozen=True)
class Sampler:
    """All results of one row, from one file.

    Attributes:
        name: of the row.
        library: and its version, as the name of the file has them.
        results: in the order of the file.
        slug: name of its page.
    """

    name: str
    library: str
    results: tuple[Result, ...]

    @property
    def slug(self) -> str:
        """Name without characters that a file name may not have."""
        return self.name.replace("/", "-")

    @functools.cached_property
    def conclusion(self) -> Conclusion:
        """Conclusion from all results."""
        return conclude(self.name, self.results)

    def cell(self, check: str) -> Result | None:
        """Worst result of a check over targets, options and seeds; a check that did not apply to all loses."""
        mine = [r for r in self.results if r.check == check]
        applied = [r for r in mine if r.verdict != "not-applicable"]
        return worst(applied or mine) if mine else None

    def ordered(self) -> list[Result]:
        """Results for reading: what does not pass first, then by tier as they were run, not applicable last."""
        rank = {"fail": 0, "error": 1, "inconclusive": 2, "pass": 3, "not-applicable": 4}
        return sorted(self.results, key=lambda r: rank[r.verdict])


def samplers(files: Sequence[Path]) -> list[Sampler]:
    """Samplers of files named `LIBRARY-VERSION.jsonl`, in order. Raises ResultsError."""
    found = []
    for file in files:
        rows: dict[str, list[Result]] = {}
        for result in load(file):
            rows.setdefault(row_of(result), []).append(result)
        found += [Sampler(name, library(file.stem), tuple(own)) for name, own in rows.items()]
    return found


def library(stem: str) -> str:
    """`jax-sgmc-0.1.5` -> `jax-sgmc 0.1.5`: the version starts at the first part that starts with a digit."""
    parts = stem.split("-")
    at = next((i for i, part in enumerate(parts) if part[:1].isdigit()), len(parts))
    return " ".join(filter(None, ("-".join(parts[:at]), "-".join(parts[at:]))))


def columns(rows: Sequence[Sampler]) -> list[tuple[str, list[str]]]:
    """Tiers with their checks that have a result, in the order of the registry; checks that it lacks come last."""
    seen = {r.check: r.tier for row in rows for r in row.results}
    names = [c.name for c in CHECKS if c.name in seen]
    names += [name for name in seen if name not in names]
    tiers: dict[str, list[str]] = {}
    for name in names:
        tiers.setdefault(seen[name], []).append(name)
    return list(tiers.items())


def table(rows: Sequence[Sampler]) -> list[list[str]]:
    """Matrix as text: a header, then a row per sampler."""
    checks = [name for _, names in columns(rows) for name in names]
    lines = [["library", "sampler", "standing", *checks]]
    for row in rows:
        cells = [cell.verdict if (cell := row.cell(name)) else "" for name in checks]
        lines.append([row.library, row.name, row.conclusion.standing, *cells])
    return lines


def to_csv(rows: Sequence[Sampler]) -> str:
    """Matrix as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(table(rows))
    return out.getvalue()


def to_markdown(rows: Sequence[Sampler]) -> str:
    """Matrix as a Markdown table, transposed: a row per check is easier to read."""
    flipped = list(map(list, zip(*table(rows), strict=True)))
    lines = [f"| {' | '.join(line)} |" for line in flipped]
    return "\n".join([lines[0], "|" + "---|" * len(flipped[0]), *lines[1:]]) + "\n"
