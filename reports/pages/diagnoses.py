"""Diagnoses of planted bugs: does the first line of the failure say what was planted?

    python -m sgmcmc_verification.reports.pages.diagnoses [--defect NAME ...] [--out FILE.jsonl]

For every planted bug that a deterministic statement on law, order or dynamics has to kill, that statement is run with
the premises `closed_state` and `fresh_draws`, whose failures come first, and the diagnosis of the conclusion is held
against the expression that the bug was planted with. A line is appended as soon as it is there, a run that is started
again goes on where it stopped, and a page is written beside the lines.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.conclusion import ABOUT_LAW, ROOTS, Judged, conclude
from sgmcmc_verification.checks.faults.fault import Defect
from sgmcmc_verification.checks.faults.registry import DEFECTS
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import default_seed, execute
from sgmcmc_verification.reports.pages.out_file import complete, publish, require_lines
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.jsonl import ROOT, read
from sgmcmc_verification.reports.templates import render

PUBLISHED = ROOT / "reports" / "published" / "diagnoses.jsonl"
FIRST_ORDER = (
    "generator_of_code", "gaussian_limit", "gradient_noise_limit", "minibatch_limit", "transfer_operator", "defect",
    "local_weak_order", "detailed_balance",
)  # fmt: skip
"""Statements of first-order identities: drift, diffusion, the limit h -> 0 of a law, the balance of a kernel."""


def concerned() -> list[Defect]:
    """Planted bugs whose killer is a deterministic statement about law, order or dynamics."""
    killers = {defect.name: find_statement(defect.killed_by.check) for defect in DEFECTS}
    return [d for d in DEFECTS if killers[d.name].decides in ABOUT_LAW and not killers[d.name].samples]


def decide(defect: Defect, revision: str) -> dict[str, Any]:
    """The line of a planted bug."""
    seed, kill = default_seed(defect.row.name), defect.killed_by
    results = []
    for name in dict.fromkeys((*ROOTS, kill.check)):
        statement = find_statement(name)
        try:
            targets = statement.targets(defect.subject)
        except BadInput:
            targets = ()
        for target in (kill.target,) if name == kill.check else targets[:1]:
            result = execute(statement, defect.subject, target, seed)
            results.append(Judged(result, result.verdict))
    found = conclude(defect.name, results).diagnosis
    reason = next((j.result.reason for j in results if j.result.statement == kill.check), "")
    return {
        "defect": defect.name,
        "statement": kill.check,
        "diagnosis": found,
        "reason": reason,
        "commit": revision,
    }


def named(defect: Defect, line: dict[str, Any]) -> bool:
    """True if the diagnosis says what the bug was planted with."""
    return bool(defect.diagnosis and re.search(defect.diagnosis, line["diagnosis"]))


def run(path: Path, chosen: Sequence[Defect]) -> None:
    """Diagnose what the file lacks and append it."""
    complete(path, {defect.name: defect for defect in chosen}, lambda line: line["defect"], decide, "bug")


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    planted = {defect.name: defect for defect in DEFECTS}
    kept = [line for line in lines if line["defect"] in planted]
    first = [line for line in kept if line["statement"] in FIRST_ORDER]
    right = {line["defect"] for line in kept if named(planted[line["defect"]], line)}
    said = lambda lines: sum(bool(line["diagnosis"]) and line["defect"] not in right for line in lines)
    rows = [
        [
            line["defect"],
            planted[line["defect"]].error,
            f"`{line['statement']}`",
            line["diagnosis"] or f"none; {line['reason']}",
            "named" if line["defect"] in right else ("not as planted" if line["diagnosis"] else "not named"),
        ]
        for line in kept
    ]
    table = markdown(
        ("planted bug", "what was planted", "killed by", "diagnosis", ""),
        [[str(cell).replace("|", "\\|") for cell in row] for row in rows],
    )
    return render(
        "diagnoses.md.j2",
        lines=kept,
        tried=len(kept),
        untried=len(concerned()) - len(kept),
        named=len(right),
        other=said(kept),
        first=len(first),
        first_named=sum(line["defect"] in right for line in first),
        first_other=said(first),
        statements=FIRST_ORDER,
        table=table,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.diagnoses",
        description="Diagnoses of planted bugs against what was planted.",
    )
    parser.add_argument("--defect", action="append", default=[], metavar="NAME", help="only this bug; repeatable")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    chosen = concerned()
    unknown = set(given.defect) - {defect.name for defect in chosen}
    if unknown:
        parser.error(f"--defect {sorted(unknown)[0]}: no planted bug of that name is diagnosed")
    jax.config.update("jax_enable_x64", True)
    run(given.out, [d for d in chosen if not given.defect or d.name in given.defect])
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
