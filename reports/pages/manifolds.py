"""Orders and distances of the samplers on manifolds, measured: one row for each sampler and target.

    python -m sgmcmc_verification.reports.pages.manifolds [--sampler NAME ...] [--fraction F] [--out FILE.jsonl]

For every sampler of the registry with targets that are not on R^n: the local weak order and the order of the stationary
law, both without noise, and the Kolmogorov-Smirnov distance of the closed-form marginals of independent chains at three
step sizes, with what theory grants it. Each result is appended to FILE as a JSON line as soon as it is there, a run
that is started again goes on where it stopped, and a Markdown page of the same name is written beside it.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import default_seed
from sgmcmc_verification.reports.pages.out_file import complete, publish, require_lines
from sgmcmc_verification.reports.records.jsonl import ROOT
from sgmcmc_verification.reports.records.results import read_renamed as read
from sgmcmc_verification.reports.runs.sweep import at_factor
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row

PUBLISHED = ROOT / "reports" / "published" / "manifolds.jsonl"
FACTORS = (1.0, 0.5, 0.25)
"""Of the usual step size."""
NOISE_FREE = ("local_weak_order", "manifold_limit")
SAMPLED = "closed_form_marginals"
BESIDES = {
    "sggmc": ("vmf-s2-concentrated", "dirichlet", "dirichlet-sphere", "dirichlet-sphere-sparse"),
    "gsgnht": ("vmf-s2-concentrated",),
    "gmc": ("dirichlet-sphere-sparse",),
}
"""Targets besides those of the rows: a more concentrated law, and laws whose force is singular at the faces."""
FRACTION = 0.25
"""Of the chains of `pytest checks`."""


class Cell(NamedTuple):
    """One statement about one sampler on one target at a multiple of the usual step size."""

    row: Row
    target: str
    statement: str
    factor: float

    @property
    def key(self) -> tuple[str, str, str, float]:
        """Key of its line."""
        return self.row.name, self.target, self.statement, self.factor


def cells(rows: Sequence[Row]) -> Iterator[Cell]:
    """All of them, sampler by sampler."""
    for row in rows:
        for name in (*row.targets, *BESIDES.get(row.name, ())):
            if find_target(name).manifold.is_linear:
                continue
            for statement in NOISE_FREE:
                yield Cell(row, name, statement, 1.0)
            for factor in FACTORS:
                yield Cell(row, name, SAMPLED, factor)


def decide(cell: Cell, fraction: float, revision: str) -> dict[str, Any]:
    """The line of a cell."""
    statement, seed = find_statement(cell.statement), default_seed(cell.row.name)
    return at_factor(statement, Subject(cell.row), cell.target, seed, cell.factor, fraction, revision)


def run(rows: Sequence[Row], path: Path, fraction: float) -> None:
    """Run what the file lacks and append it."""
    key = lambda line: (line["sampler"], line["target"], line["statement"], line["detail"]["factor"])
    decided = lambda cell, revision: decide(cell, fraction, revision)
    complete(path, {cell.key: cell for cell in cells(rows)}, key, decided, "statement")


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    found: dict[tuple[str, str], dict[tuple[str, float], dict[str, Any]]] = {}
    for line in lines:
        found.setdefault((line["sampler"], line["target"]), {})[line["statement"], line["detail"]["factor"]] = line
    revisions = sorted({line["detail"]["commit"] for line in lines})
    rows = []
    for (sampler, target), cell in found.items():
        local = _order(cell.get(("local_weak_order", 1.0)))
        law = cell.get(("manifold_limit", 1.0))
        bias = f" ({law['detail']['bias'][0]:.2g})" if law and "bias" in law["detail"] else ""
        distances = [cell.get((SAMPLED, f)) for f in FACTORS]
        count = next((d["n"] for d in distances if d and d["n"]), None)
        rows.append(
            f"| {sampler} | {target} | {find_target(target).manifold.name} | {local} | {_order(law)}{bias} | "
            + " | ".join(_distance(d) for d in distances)
            + f" | {count or ''} |"
        )
    commits = ", ".join(r[:12] + "+" * r.endswith("+") for r in revisions)
    return render("manifolds.md.j2", commits=commits, factors=[f"{f:g}" for f in FACTORS], rows=rows)


def _order(line: dict[str, Any] | None) -> str:
    if line is None or line["verdict"] in ("not-applicable", "out-of-reach"):
        return "–"
    measured = line["detail"].get("measured_order")
    return (f"{measured:.2f}" if measured is not None else "") + _mark(line)


def _distance(line: dict[str, Any] | None) -> str:
    if line is None or line["effect"] is None:
        return "–"
    return f"{line['effect']:.2g} {'' if line['unit'] == 'KS distance' else '(limit)'}{_mark(line)}".strip()


def _mark(line: dict[str, Any]) -> str:
    return "" if line["verdict"] == "pass" else f" [{line['verdict']}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.manifolds",
        description="Orders and distances of the samplers on manifolds.",
    )
    parser.add_argument("--sampler", action="append", default=[], metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--fraction", type=float, default=FRACTION, metavar="F", help="of the chains")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    if not 0 < given.fraction <= 1:
        parser.error(f"--fraction {given.fraction}: must be above 0 and at most 1")
    try:
        rows = [sampler_row(name) for name in given.sampler] or list(SAMPLERS)
    except KeyError as error:
        parser.error(str(error.args[0]))
    jax.config.update("jax_enable_x64", True)
    run(rows, given.out, given.fraction)
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
