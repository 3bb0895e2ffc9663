"""Files of results of checks, as `pytest checks --report` and `python -m reports run` write them."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from checks.core.result import SCHEMA, Result
from reports.records.jsonl import read

REQUIRED = ("check", "tier", "equation", "sampler", "verdict", "reason", "schema")
Record = msgspec.defstruct(
    "Record",
    [(f.name, f.type) if f.name in REQUIRED else (f.name, f.type, None) for f in fields(Result)],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Fields and types of `Result`, against which a line is validated."""
Key = tuple[str, str, str | None, tuple[tuple[str, str], ...], float | None]
"""(sampler, check, target, options, factor of the usual step size): subject of a result."""


class ResultsError(ValueError):
    """Error for a file of results that cannot be used; the message names file, line and remedy."""


def load(path: Path) -> list[Result]:
    """Results of a file; a last line that was cut off by an interruption is dropped.

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


def _result(line: dict[str, Any], where: str) -> Result:
    if line.get("schema", SCHEMA) != SCHEMA:
        raise ResultsError(
            f"{where}: has the schema {line['schema']}, this version of the suite reads {SCHEMA}; run the checks "
            "again, or use the version that wrote the file"
        )
    try:
        msgspec.convert(line, Record)
    except msgspec.ValidationError as error:
        raise ResultsError(
            f"{where}: not the result of a check ({error}); give a file that pytest checks --report wrote"
        ) from None
    return Result(**line)


def row_of(result: Result) -> str:
    """Row that a result belongs to: the sampler's name without its options."""
    return result.sampler.partition("[")[0]


def key(result: Result) -> Key:
    """Subject of a result: everything that identifies it but the seed."""
    options = tuple(sorted((name, repr(value)) for name, value in result.options.items()))
    return row_of(result), result.check, result.target, options, result.detail.get("factor")
