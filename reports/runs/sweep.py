"""A sweep: samplers x targets x statements x step sizes x seeds, each cell a line of results.

    python -m sgmcmc_verification.reports run [--sampler NAME ...] [--target NAME ...] [--tier TIER ...]
                          [--check NAME ...]
                          [--factor F ...] [--seed S ...] [--chains F] [--workers N | --scheduler ADDRESS]
                          --out FILE.jsonl
    python -m sgmcmc_verification.reports run EXPERIMENT [its own arguments]

A cell is what one line of `pytest checks --report` is, at F times the usual step size. Each line is appended as soon as
it is there, and the same command goes on where it was interrupted. Several runs may write to one file: a cell that
another run has written meanwhile is not computed again. `reports.runs.cluster` does the same on many processes. What
is concluded from a sweep is said of a part of a run: it has no plan that a law could be held to.
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from tqdm import tqdm

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import closest
from sgmcmc_verification.checks.core.check import Statement
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.registry import CHECKS, SUCCESSORS
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.runner.plan import PlannedStatement, make_plan
from sgmcmc_verification.reports.records.jsonl import appended, commit, read
from sgmcmc_verification.reports.records.results import renamed


class Cell(NamedTuple):
    """A statement of `pytest checks` with its seed, at a multiple of the usual step size."""

    case: PlannedStatement
    factor: float

    @property
    def key(self) -> tuple[str, str, str | None, int, float]:
        """Key of its line."""
        return self.case.subject.name, self.case.statement.name, self.case.target, self.case.seed, self.factor

    def __str__(self) -> str:
        """`sgld local_weak_order on anharmonic at 0.5`."""
        return f"{self.case.subject.name} {self.case.statement.name} on {self.case.target} at {self.factor:g}"


def key_of(line: dict[str, Any]) -> tuple[str, str, str | None, int, float]:
    """The key of the cell that a line is of."""
    options = ",".join(f"{k}={v}" for k, v in line["options"].items())
    row = line["sampler"].partition("[")[0]
    name = f"{row}[{options}]" if options else row
    return name, renamed(line)["statement"], line["target"], line["seed"], line["detail"].get("factor", 1.0)


def cells(
    samplers: Sequence[str],
    targets: Sequence[str],
    tiers: Sequence[str],
    checks: Sequence[str],
    factors: Sequence[float],
    seeds: Sequence[int],
) -> Iterator[Cell]:
    """All cells, those of one sampler and target together; `checks` holds names of checks or of statements.

    Raises:
        BadInput: for any mistake in the names, before any work starts.
    """
    for factor in factors:
        if not factor > 0:
            raise BadInput(f"--factor {factor}: must be positive")
    for seed in seeds or (None,):
        plan = make_plan(samplers, targets, tiers, seed=None if seed is None else str(seed))
        names = {check.name: {s.name for s in check.statements} for check in CHECKS}
        names |= {case.statement.name: {case.statement.name} for case in plan.cases}
        names |= {old: {new} for old, new in SUCCESSORS.items()}
        chosen: set[str] = set()
        for name in checks:
            mine = names.get(name, set())
            if not any(case.statement.name in mine for case in plan.cases):
                raise BadInput(f"--check {name}: no such check runs here; {closest(name, sorted(names))}")
            chosen |= mine
        for case in plan.cases:
            if not checks or case.statement.name in chosen:
                for factor in factors:
                    yield Cell(case, factor)


def compute(cell: Cell, chains: float, revision: str) -> dict[str, Any]:
    """The line of a cell."""
    case = cell.case
    return at_factor(case.statement, case.subject, case.target, case.seed, cell.factor, chains, revision)


def at_factor(
    statement: Statement, subject: Subject, target: str | None, seed: int, factor: float, fraction: float, revision: str
) -> dict[str, Any]:
    """The line of a statement at a multiple of the usual step size, with a fraction of the chains."""
    row = dataclasses.replace(subject.row, step_size=factor * subject.row.step_size)
    with fraction_of_chains(fraction):
        result = execute(statement, dataclasses.replace(subject, row=row), target, seed)
    detail = {**result.detail, "factor": factor, "fraction": fraction, "commit": revision}
    return json.loads(dataclasses.replace(result, detail=detail).to_json())


def run(queue: Sequence[Cell], path: Path, chains: float) -> int:
    """Compute what the file lacks and append it; returns the number of cells that were computed."""
    jax.config.update("jax_enable_x64", True)
    done = {key_of(line) for line in read(path)}
    left = [cell for cell in queue if cell.key not in done]
    revision, last, computed, seen = commit(), None, 0, path.stat().st_size if path.exists() else 0
    with appended(path, key_of) as append:
        for cell in tqdm(left, unit="cell", disable=not sys.stderr.isatty()):
            size = path.stat().st_size
            if size != seen:  # another run has written to the file
                done, seen = {key_of(line) for line in read(path)}, size
            if cell.key in done:
                continue
            subject = cell.case.subject.name, cell.case.target
            if subject != last:
                jax.clear_caches()
                last = subject
            computed += append(json.dumps(compute(cell, chains, revision), sort_keys=True))
    return computed
