"""Conformance matrix: sampler x statement, as cells of a page and as tables to export."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from sgmcmc_verification.checks.core.conclusion import Conclusion
from sgmcmc_verification.checks.core.obligations import obligation
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.registry import STATEMENTS
from sgmcmc_verification.reports.pages.compare import worst
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.results import Header, conduct, load

SYMBOLS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "out-of-reach": "○", "not-applicable": "–", "error": "!"}


@dataclass(frozen=True)
class Sampler:
    """All results of one row, from one file.

    Attributes:
        name: of the row.
        library: and its version, as the name of the file has them.
        results: in the order of the file.
        conclusion: from all of them.
        part: why it was run in part; empty if it was not, or if the file does not say.
        header: what was run, by which command and when; None if the file does not say.
        slug: name of its page.
    """

    name: str
    library: str
    results: tuple[Result, ...]
    conclusion: Conclusion
    part: str = ""
    header: Header | None = None

    @property
    def slug(self) -> str:
        """Name without characters that a file name may not have."""
        return self.name.replace("/", "-")

    @property
    def conduct(self) -> str:
        """`clean`, `not examined`, or the faults."""
        return conduct(self.conclusion, self.results)

    @property
    def shown_for(self) -> list[str]:
        """The obligations that were met, in words."""
        return [obligation(name).text for name in self.conclusion.met]

    def cell(self, statement: str) -> Result | None:
        """Worst result of a statement over targets, options and seeds; one that did not apply to all loses."""
        mine = [r for r in self.results if r.statement == statement]
        applied = [r for r in mine if r.verdict != "not-applicable"]
        return worst(applied or mine) if mine else None

    def ordered(self) -> list[Result]:
        """Results for reading: what does not pass first, then by tier as they were run, not applicable last."""
        rank = {"fail": 0, "error": 1, "inconclusive": 2, "out-of-reach": 3, "pass": 4, "not-applicable": 5}
        return sorted(self.results, key=lambda r: rank[r.verdict])


def samplers(files: Sequence[Path]) -> list[Sampler]:
    """Samplers of files named `LIBRARY-VERSION.jsonl`, in order. Raises ResultsError."""
    found = []
    for file in files:
        run, name = load(file), library(file.stem)
        found += [
            Sampler(c.sampler, name, tuple(run.by_row[c.sampler]), c, run.part(c.sampler), run.header)
            for c in run.conclusions()
        ]
    return found


def library(stem: str) -> str:
    """`jax-sgmc-0.1.5` -> `jax-sgmc 0.1.5`: the version starts at the first part that starts with a digit."""
    parts = stem.split("-")
    at = next((i for i, part in enumerate(parts) if part[:1].isdigit()), len(parts))
    return " ".join(filter(None, ("-".join(parts[:at]), "-".join(parts[at:]))))


def columns(rows: Sequence[Sampler]) -> list[tuple[str, list[str]]]:
    """Tiers with their statements that have a result, in the order of the registry; those that it lacks come last."""
    seen = {r.statement: r.tier for row in rows for r in row.results}
    names = [s.name for s in STATEMENTS if s.name in seen]
    names += [name for name in seen if name not in names]
    tiers: dict[str, list[str]] = {}
    for name in names:
        tiers.setdefault(seen[name], []).append(name)
    return list(tiers.items())


def table(rows: Sequence[Sampler]) -> list[list[str]]:
    """Matrix as text: a header, then a row per sampler."""
    statements = [name for _, names in columns(rows) for name in names]
    lines = [["library", "sampler", "law", "conduct", *statements]]
    for row in rows:
        cells = [cell.verdict if (cell := row.cell(name)) else "" for name in statements]
        law = row.conclusion.law_in_words() + (f" (part: {row.part})" if row.part else "")
        lines.append([row.library, row.name, law, row.conduct, *cells])
    return lines


def to_csv(rows: Sequence[Sampler]) -> str:
    """Matrix as CSV."""
    header, *lines = table(rows)
    return pd.DataFrame(lines, columns=header).to_csv(index=False, lineterminator="\n")


def to_markdown(rows: Sequence[Sampler]) -> str:
    """Matrix as a Markdown table, transposed: a row per statement is easier to read."""
    header, *lines = zip(*table(rows), strict=True)
    return "\n".join(markdown(header, lines)) + "\n"
