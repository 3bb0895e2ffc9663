"""Index of the findings: library x sampler x verdict, from the published results; as Markdown.

python -m reports.pages.findings_index [--write]
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from checks.pytest_plugin.terminal import Outcome
from reports.pages.conclusion import BAD
from reports.pages.verdict_table import LETTERS, judged, read
from reports.templates import render

PUBLISHED = Path(__file__).resolve().parents[1] / "published"
FINDINGS = Path(__file__).resolve().parents[1] / "findings"
PAGE = FINDINGS / "README.md"
START, END = "<!-- made by python -m reports.pages.findings_index --write -->", "<!-- end -->"


def of_checks(folder: Path = PUBLISHED) -> tuple[Path, ...]:
    """Results of checks in a folder: the files `<library>-<version>.jsonl`, the suite's own samplers first."""
    files = [path for path in sorted(folder.glob("*-[0-9]*.jsonl")) if _first_sampler(path)]
    return tuple(sorted(files, key=lambda path: "/" in _first_sampler(path)))


def libraries(folder: Path = PUBLISHED) -> tuple[Path, ...]:
    """Files of results of checks whose samplers are adapters."""
    return tuple(path for path in of_checks(folder) if "/" in _first_sampler(path))


def _first_sampler(path: Path) -> str:
    """Sampler of the first line of a file, `library/name` for an adapter; empty if it is no result of a check."""
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines, "null"))
    is_result = isinstance(first, dict) and {"sampler", "check", "verdict"} <= set(first)
    return str(first["sampler"]) if is_result else ""


class Row(NamedTuple):
    """Row of the table.

    Attributes:
        library: name and version, with a link to its page if there is one.
        sampler: name of its row.
        verdict: overall.
        failing: word for a verdict -> checks that have it, for those verdicts that are no pass.
    """

    library: str
    sampler: str
    verdict: str
    failing: dict[str, set[str]]


def rows(path: Path) -> list[Row]:
    """Rows of the samplers of a file."""
    outcomes = read(path)
    page = FINDINGS / f"{path.stem}.md"
    name, _, version = path.stem.rpartition("-")
    library = f"[{name} {version}]({page.name})" if page.exists() else f"{name} {version}"
    return [Row(library, v.sampler, v.verdict, _failing(outcomes, v.sampler)) for v in judged(outcomes)]


def _failing(outcomes: Sequence[Outcome], sampler: str) -> dict[str, set[str]]:
    """Checks of a sampler that did not pass, by verdict."""
    found: dict[str, set[str]] = {verdict: set() for verdict in BAD}
    for outcome in outcomes:
        if outcome.row == sampler and outcome.result.verdict in BAD:
            found[outcome.result.verdict].add(outcome.result.check)
    return {LETTERS[verdict]: checks for verdict, checks in found.items() if checks}


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
    parser = argparse.ArgumentParser(prog="python -m reports.pages.findings_index", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into reports/findings/README.md")
    if parser.parse_args(arguments).write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
