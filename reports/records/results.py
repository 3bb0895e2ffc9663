"""Files of results of checks, as `pytest checks --report` and `python -m reports run` write them."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from checks.core.result import SCHEMA, VERDICTS, Result
from reports.records.jsonl import read

FIELDS = frozenset(field.name for field in fields(Result))
Key = tuple[str, str, str | None, tuple[tuple[str, str], ...], float | None]
"""(sampler, check, target, options, factor of the usual step size): what a result is about."""


class ResultsError(ValueError):
    """A file of results cannot be used; the message names file, line and remedy."""


def load(path: Path) -> list[Result]:
    """The results of a file; a last line that was cut off by an interruption is dropped.

    Raises:
        ResultsError: if the file is missing, a line is no result of a check, or has another schema than this version
            of the suite writes. Results of two schemas are never mixed.
    """
    if not path.is_file():
        raise ResultsError(f"{path}: no such file; write one with pytest checks --report FILE.jsonl")
    try:
        lines = read(path)
    except ValueError as error:
        raise ResultsError(str(error)) from None
    return [_result(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def _result(line: Any, where: str) -> Result:
    if not isinstance(line, dict) or not {"check", "sampler", "verdict"} <= set(line):
        raise ResultsError(f"{where}: not the result of a check; give a file that pytest checks --report wrote")
    if line.get("schema") != SCHEMA:
        raise ResultsError(
            f"{where}: has the schema {line.get('schema')}, this version of the suite reads {SCHEMA}; run the checks "
            "again, or use the version that wrote the file"
        )
    unknown = sorted(set(line) - FIELDS)
    if unknown:
        raise ResultsError(
            f"{where}: has the unknown field {unknown[0]!r} for the schema {SCHEMA}; the file was edited"
        )
    if line["verdict"] not in VERDICTS:
        raise ResultsError(f"{where}: {line['verdict']!r} is no verdict; known: {', '.join(VERDICTS)}")
    return Result(**line)


def row_of(result: Result) -> str:
    """The row that a result belongs to: the sampler's name without its options."""
    return result.sampler.partition("[")[0]


def key(result: Result) -> Key:
    """What a result is about, without the seed and what it found."""
    options = tuple(sorted((name, repr(value)) for name, value in result.options.items()))
    return row_of(result), result.check, result.target, options, result.detail.get("factor")


def by_key(results: Iterable[Result]) -> dict[Key, list[Result]]:
    """Results, grouped by what they are about (several seeds make several), in order."""
    groups: dict[Key, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups
