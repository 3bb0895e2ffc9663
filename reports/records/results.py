"""Files of results, as `pytest checks --report` and `python -m sgmcmc_verification.reports run` write them.

A line is the result of a statement. The first line of a file of `pytest checks` is its plan: what was to be run for
each sampler, by which command, at which commit; with it, a part of a run cannot look like the whole. Lines of schema 1
name the statement `check`, have no plan, and do not say what they decide: that is what the registry says today.
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from sgmcmc_verification.checks.core import conclusion
from sgmcmc_verification.checks.core.bad_input import in_one_line
from sgmcmc_verification.checks.core.check import Statement
from sgmcmc_verification.checks.core.conclusion import Conclusion, Judged, Word, conclude
from sgmcmc_verification.checks.core.obligations import OBLIGATIONS
from sgmcmc_verification.checks.core.result import SCHEMA, Result
from sgmcmc_verification.checks.registry import STATEMENTS, SUCCESSORS, check_of
from sgmcmc_verification.checks.runner.expected_failures import ExpectedFailure
from sgmcmc_verification.checks.runner.text import Outcome
from sgmcmc_verification.reports.records.jsonl import read, whole_lines
from sgmcmc_verification.targets.registry import TARGETS, target

FORMER = 1
"""The schema before statements and plans, which is still read."""
Name = Literal[tuple(o.name for o in OBLIGATIONS)]  # type: ignore[valid-type]
"""Of an obligation."""


class Detail(TypedDict, total=False):
    """Details of results that the reports read; others are not looked at."""

    factor: float | None
    fraction: float | None
    commit: str
    step_sizes: list[float | None] | None
    measured_order: float | None


REQUIRED = ("statement", "check", "tier", "equation", "sampler", "verdict", "reason", "schema")
Line = msgspec.defstruct(
    "Line",
    [
        (name, kind) if name in REQUIRED else (name, kind, None)
        for f in fields(Result)
        for name, kind in [(f.name, {"detail": Detail, "meets": list[Name]}.get(f.name, f.type))]
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Fields and types of `Result`, against which a line is validated."""
LATER: dict[str, tuple[Any, ...]] = {"left_out": ((),), "place": ("",)}
"""Fields of a plan that files of earlier versions lack, with what stands for them."""
Planned = msgspec.defstruct(
    "Planned",
    [
        (f.name, tuple[Name, ...] if f.name == "due" else f.type, *LATER.get(f.name, ()))
        for f in fields(conclusion.Plan)
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Fields and types of `checks.core.conclusion.Plan`."""
WORST_LAST: tuple[Word, ...] = ("pass", "part", "known", "fault", "inconclusive", "error", "fail")
"""Words of a conclusion."""
Key = tuple[str, str, str | None, tuple[tuple[str, str], ...], float | None]
"""(sampler, statement, target, options, factor of the usual step size): subject of a result."""


class ResultsError(ValueError):
    """Error for a file of results that cannot be used; the message, one line, names file, line and remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of a file: what was to be run, by which command, on what, and when."""

    plan: dict[str, Planned]  # type: ignore[valid-type]
    law_only: bool
    chains: float
    command: str
    commit: str
    versions: dict[str, str]
    platform: str
    date: str
    schema: int
    check_set: str = ""
    shard: str = ""


@dataclass(frozen=True)
class Run:
    """A file of results.

    Attributes:
        results: in its order.
        header: its first line; None for a file that does not say what was to be run.
        cut: True if its last line was cut off by an interruption.
    """

    results: tuple[Result, ...]
    header: Header | None = None
    cut: bool = False

    @functools.cached_property
    def by_row(self) -> dict[str, list[Result]]:
        """Results of each sampler, those that were planned and have none included."""
        found: dict[str, list[Result]] = {name: [] for name in (self.header.plan if self.header else ())}
        for result in self.results:
            found.setdefault(row_of(result), []).append(result)
        return found

    def plan_of(self, row: str) -> conclusion.Plan | None:
        """The plan of a run for a sampler; None if nothing says so.

        Cells of a sweep and a file that ends within a line are a part of a run, whatever they hold.
        """
        if self.header is not None:
            planned = self.header.plan.get(row)
            missing = conclusion.Plan(0, part="not in the plan of the file")
            return missing if planned is None else conclusion.Plan(**msgspec.structs.asdict(planned))
        if any("factor" in result.detail for result in self.by_row[row]):
            return conclusion.Plan(0, part="cells of a sweep")
        return conclusion.Plan(0, part="the file ends within a line") if self.cut else None

    def part(self, row: str) -> str:
        """The reason for which a sampler was run in part; empty if it was not, or if nothing says so."""
        plan, count = self.plan_of(row), len(self.by_row[row])
        if plan is None:
            return ""
        return plan.part or (f"{count} of {plan.cases} statements were run" if count < plan.cases else "")

    def outcomes(self, expected_failures: Sequence[ExpectedFailure] = ()) -> list[Outcome]:
        """Results with the known failure that each matches, if any."""
        found = []
        for result in self.results:
            about = (result.sampler, row_of(result), result.statement, result.target)
            found.append(Outcome(about[1], result, next((d for d in expected_failures if d.matches(*about)), None)))
        return found

    def conclusions(self, expected_failures: Sequence[ExpectedFailure] = (), planned: bool = True) -> list[Conclusion]:
        """The conclusion of each sampler.

        Args:
            expected_failures: known failures.
            planned: False to draw it from the results alone, as for a file without a plan.
        """
        judged: dict[str, list[Judged]] = {row: [] for row in self.by_row}
        for outcome in self.outcomes(expected_failures):
            judged[outcome.row].append(Judged(outcome.result, outcome.kind))
        law_only = self.header is not None and self.header.law_only
        return [
            conclude(row, own, self.plan_of(row) if planned else None, law_only)
            for row, own in judged.items()
            if own or planned
        ]


def load(path: Path) -> Run:
    """The results of a file, and its plan; a last line that was cut off by an interruption is dropped.

    Raises:
        ResultsError: if the file is missing, a line is neither a result nor the plan, or has a schema that this version
            of the suite does not read.
    """
    if not path.is_file():
        raise ResultsError(f"{path}: no such file; write one with pytest checks --report FILE.jsonl")
    try:
        lines, cut = whole_lines(path)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise ResultsError(str(error)) from None
    header = _header(lines[0], f"{path}, line 1") if lines and is_header(lines[0]) else None
    first = 0 if header is None else 1
    results = [_result(line, f"{path}, line {number}") for number, line in enumerate(lines[first:], first + 1)]
    return Run(tuple(results), header, cut)


def loaded(path: Path) -> Run:
    """`load` of a file that has to hold results. Raises ResultsError if it holds none."""
    run = load(path)
    if not run.results:
        raise ResultsError(f"{path}: holds no results; was the run interrupted?")
    return run


def is_header(line: dict[str, Any]) -> bool:
    """True for a line that holds the plan of a file."""
    return "plan" in line and "verdict" not in line


def renamed(line: dict[str, Any]) -> dict[str, Any]:
    """A line under the names of today: its statement, or the successor of it, and the check that this is part of."""
    former = line.get("statement", line.get("check"))
    if not isinstance(former, str):
        return line
    name = SUCCESSORS.get(former, former)
    check = check_of(name)
    family = check.name if check else line.get("check") if "statement" in line else name
    return {**line, "statement": name, "check": family}


def read_renamed(path: Path) -> list[dict[str, Any]]:
    """Lines of a file of one of the pages, as `reports.records.jsonl.read` reads them, under the names of today."""
    return [renamed(line) for line in read(path)]


def _header(line: dict[str, Any], where: str) -> Header:
    _require_schema(line, (SCHEMA,), where)
    try:
        return msgspec.convert(line, Header)
    except msgspec.ValidationError as error:
        raise ResultsError(
            f"{where}: not the plan of a run ({error}); give a file that pytest checks --report wrote"
        ) from None


def _result(line: dict[str, Any], where: str) -> Result:
    _require_schema(line, (FORMER, SCHEMA), where)
    former = line.get("schema") == FORMER
    if former or "statement" in line:
        line = renamed(line)
    try:
        msgspec.convert(line, Line)
    except msgspec.ValidationError as error:
        raise ResultsError(
            f"{where}: not the result of a statement ({error}); give a file that pytest checks --report wrote"
        ) from None
    result = Result(**line)
    return _with_facts(result) if former else result


def _require_schema(line: dict[str, Any], known: Sequence[int], where: str) -> None:
    if line.get("schema", SCHEMA) not in known:
        raise ResultsError(
            f"{where}: has the schema {line['schema']}, this version of the suite reads "
            f"{' and '.join(map(str, known))}; run the checks again, or use the version that wrote the file"
        )


_BY_NAME: dict[str, Statement] = {statement.name: statement for statement in STATEMENTS}
_EXACT = frozenset(row.name for row in TARGETS)


def _with_facts(result: Result) -> Result:
    """A result of schema 1 with what its statement decides and meets, as the registry has it."""
    statement = _BY_NAME.get(result.statement)
    if statement is None:
        return dataclasses.replace(result, schema=SCHEMA)
    return dataclasses.replace(
        result,
        decides=statement.decides,
        severity=statement.severity if statement.decides == "conduct" else None,
        meets=list(_meets(statement, result.target)) if result.verdict == "pass" and result.target else [],
        schema=SCHEMA,
    )


@functools.cache
def _meets(statement: Statement, name: str) -> tuple[str, ...]:
    """Names of the obligations that a pass on a target meets; none for a target whose data would have to be read."""
    return tuple(o.name for o in statement.meets(target(name))) if name in _EXACT else ()


def worst_word(conclusions: Sequence[Conclusion]) -> Word:
    """The word that stands for several samplers."""
    words = {c.word for c in conclusions}
    return next(word for word in reversed(WORST_LAST) if word in words)


def conduct(conclusion: Conclusion, results: Sequence[Result]) -> str:
    """`clean`, `not examined`, or the faults with their severity.

    Args:
        conclusion: of the sampler.
        results: of it.
    """
    faults = [f"{fault.severity}: {fault.statement}" for fault in conclusion.faults]
    raised = [r.statement for r in results if r.decides == "conduct" and r.verdict == "error"]
    faults += [f"error: {name}" for name in dict.fromkeys(raised)]
    faults += [f"known: {name}" for name in conclusion.excused]
    if faults:
        return "; ".join(faults)
    return "clean" if any(r.decides == "conduct" and r.verdict == "pass" for r in results) else "not examined"


def row_of(result: Result) -> str:
    """Row that a result belongs to: the sampler's name without its options."""
    return result.sampler.partition("[")[0]


def key(result: Result) -> Key:
    """Subject of a result: everything that identifies it but the seed."""
    options = tuple(sorted((name, repr(value)) for name, value in result.options.items()))
    return row_of(result), result.statement, result.target, options, result.detail.get("factor")
