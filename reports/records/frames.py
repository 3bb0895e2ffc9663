"""Results as data frames, for tables, joins, CSV and Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd

from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.reports.records.results import key, load, row_of

NUMBERS = {
    field.name: {int | None: "Int64", float | None: "Float64"}[field.type]
    for field in fields(Result)
    if field.type in (int | None, float | None)
}


def frame(results: Iterable[Result]) -> pd.DataFrame:
    """One row per result: the fields of `Result`, `row` (the sampler without its options) and `key` (its subject)."""
    found = list(results)
    table = pd.DataFrame([vars(result) for result in found], columns=[f.name for f in fields(Result)], dtype=object)
    table["row"] = pd.Series([row_of(result) for result in found], dtype=object)
    table["key"] = pd.Series([key(result) for result in found], dtype=object)
    return table.astype(NUMBERS)


def results_frame(path: Path) -> pd.DataFrame:
    """`frame` of the results of a file. Raises ResultsError."""
    return frame(load(path).results)


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table; a bar or a line break inside of a cell is escaped."""
    cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)
    return [_line(header), "|" + "---|" * len(header), *map(_line, cells)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
