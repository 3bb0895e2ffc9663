"""Index of the findings: library x sampler x verdict, from the published results; as Markdown.

python -m sgmcmc_verification.reports.pages.findings_index [--write]
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.reports.pages.verdict_table import LETTERS
from sgmcmc_verification.reports.records.results import conduct, is_header, load
from sgmcmc_verification.reports.templates import render

PUBLISHED = Path(__file__).resolve().parents[1] / "published"
FINDINGS = Path(__file__).resolve().parents[1] / "findings"
PAGE = FINDINGS / "README.md"
BAD = ("fail", "error", "inconclusive")
"""Verdicts that are named."""
START, END = "<!-- made by python -m sgmcmc_verification.reports.pages.findings_index --write -->", "<!-- end -->"


def of_checks(folder: Path = PUBLISHED) -> tuple[Path, ...]:
    """Results of checks in a folder: the files `<library>-<version>.jsonl`, the suite's own samplers first."""
    files = [path for path in sorted(folder.glob("*-[0-9]*.jsonl")) if _first_sampler(path)]
    return tuple(sorted(files, key=lambda path: "/" in _first_sampler(path)))


def libraries(folder: Path = PUBLISHED) -> tuple[Path, ...]:
    """Files of results of checks whose samplers are adapters."""
    return tuple(path for path in of_checks(folder) if "/" in _first_sampler(path))


def _first_sampler(path: Path) -> str:
    """Sampler of the first result of a file, `library/name` for an adapter; empty if it holds no results of checks."""
    with path.open(encoding="utf-8") as lines:
        try:
            first = json.loads(next(lines, "null"))
            if isinstance(first, dict) and is_header(first):
                first = json.loads(next(lines, "null"))
        except ValueError:
            return ""
    is_result = isinstance(first, dict) and {"sampler", "check", "verdict"} <= set(first)
    return str(first["sampler"]) if is_result else ""


class Row(NamedTuple):
    """Row of the table.

    Attributes:
        library: name and version, with a link to its page if there is one.
        sampler: name of its row.
        law: in words.
        conduct: in words.
        failing: word for a verdict -> statements that have it, for those verdicts that are no pass.
    """

    library: str
    sampler: str
    law: str
    conduct: str
    failing: dict[str, set[str]]


def rows(path: Path) -> list[Row]:
    """Rows of the samplers of a file."""
    run = load(path)
    page = FINDINGS / f"{path.stem}.md"
    name, _, version = path.stem.rpartition("-")
    library = f"[{name} {version}]({page.name})" if page.exists() else f"{name} {version}"
    found = []
    for c in run.conclusions():
        part, own = run.part(c.sampler), run.by_row[c.sampler]
        law = c.law_in_words() + (f" (part: {part})" if part else "")
        found.append(Row(library, c.sampler, law, conduct(c, own), _failing(own)))
    return found


def _failing(results: Sequence[Result]) -> dict[str, set[str]]:
    """Statements about the law that did not pass, by verdict; those of conduct have a column of their own."""
    found: dict[str, set[str]] = {verdict: set() for verdict in BAD}
    for result in results:
        if result.verdict in BAD and result.decides != "conduct":
            found[result.verdict].add(result.statement)
    return {LETTERS[verdict]: statements for verdict, statements in found.items() if statements}


def table() -> str:
    """Table of all libraries, in the order of their names."""
    return render("findings.md.j2", rows=[row for path in libraries() for row in rows(path)])


def page(text: str) -> str:
    """Page with its table replaced. Raises ValueError if it has no place for one."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{PAGE.name}: needs the lines {START!r} and {END!r}, between which the table stands")
    return f"{before}{START}\n\n{table()}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.findings_index", description=__doc__
    )
    parser.add_argument("--write", action="store_true", help="put the table into reports/findings/README.md")
    if parser.parse_args(arguments).write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
