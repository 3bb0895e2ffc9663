"""Proofs of the samplers: what is shown of each for every smooth potential, from its program alone.

    python -m sgmcmc_verification.reports.pages.proofs [--references] [--sampler NAME ...] [--out FILE.jsonl]

Each row is read at its default options, for every kind of positions that `checks.proof.of_subject` asks for, up to the
first kind at which it fails. Samplers that run in Python have no program to be read, and get this as their reason.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.checks.proof.of_subject import ASKED, proofs_of
from sgmcmc_verification.checks.proof.prove import Proof
from sgmcmc_verification.checks.proof.settings import LINE, PLANE
from sgmcmc_verification.checks.proof.statements.result import OUTCOMES, Outcome
from sgmcmc_verification.reports.pages.out_file import complete, publish, require_lines
from sgmcmc_verification.reports.records.frames import markdown
from sgmcmc_verification.reports.records.jsonl import ROOT, read
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.adapters.common import MissingLibrary
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError
from sgmcmc_verification.samplers.adapters.registry import ADAPTERS
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.capabilities import IsolatedSampler
from sgmcmc_verification.samplers.registry import SAMPLERS

PUBLISHED = ROOT / "reports" / "published" / "proofs.jsonl"
SETTINGS = tuple(setting.name for setting in ASKED)
ELSEWHERE = "runs in a process of its own"
"""Reason of a sampler without a program to be read; those of isolated environments run there."""


def word(proof: Proof) -> str:
    """A proof in one word: `proved`, `verified`, `undecided` or `fail`."""
    if proof.verdict != "pass":
        return proof.verdict
    return "proved" if proof.is_proved else "verified"


def statements(proof: Proof) -> dict[str, Outcome]:
    """Statement -> its outcome, the worst one over the regions of the state space."""
    found: dict[str, Outcome] = {}
    for result in proof.results:
        before = found.get(result.statement, OUTCOMES[0])
        found[result.statement] = OUTCOMES[max(map(OUTCOMES.index, (before, result.outcome)))]
    return found


def decide(row: Row, revision: str) -> dict[str, Any]:
    """The line of a sampler."""
    line: dict[str, Any] = {"sampler": row.name, "commit": revision}
    subject = Subject(row)
    try:
        if isinstance(subject.sampler(find_target(row.targets[0])), IsolatedSampler):
            return line | {"reason": ELSEWHERE}
    except BridgeError:
        return line | {"reason": ELSEWHERE}
    except MissingLibrary as reason:
        return line | {"reason": str(reason)}
    settings = {
        name: {
            "verdict": proof.verdict,
            "outcome": word(proof),
            "reason": proof.reason.replace(f"{ROOT}/", ""),
            "milliseconds": round(1e3 * proof.seconds),
            "statements": statements(proof),
        }
        for name, proof in proofs_of(subject).items()
    }
    return line | {"settings": settings}


def run(path: Path, rows: Sequence[Row]) -> None:
    """Read the samplers that the file lacks and append their lines."""
    complete(path, {row.name: row for row in rows}, lambda line: line["sampler"], decide, "sampler")


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The Markdown page of a file of results."""
    asked = [line for line in lines if "settings" in line]
    plane = [line["settings"][PLANE.name]["outcome"] for line in asked if PLANE.name in line["settings"]]
    rows = [
        [
            line["sampler"],
            *(line["settings"].get(name, {"outcome": "–"})["outcome"] for name in SETTINGS),
            sum(found["milliseconds"] for found in line["settings"].values()),
        ]
        for line in asked
    ]
    return render(
        "proofs.md.j2",
        lines=lines,
        asked=len(asked),
        plane=PLANE.name,
        counts={outcome: plane.count(outcome) for outcome in ("proved", "verified", "undecided")},
        table=markdown(("sampler", *SETTINGS, "milliseconds"), rows),
        failing=_first(asked, "fail", SETTINGS),
        undecided=_first(asked, "undecided", (LINE.name, PLANE.name)),
        left=[(line["sampler"], line["reason"]) for line in lines if "reason" in line],
    )


def _first(lines: Sequence[dict[str, Any]], outcome: str, names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Sampler, setting and reason of the first of some settings with an outcome, for each sampler that has one."""
    found = []
    for line in lines:
        name = next((n for n in names if line["settings"].get(n, {}).get("outcome") == outcome), None)
        if name is not None:
            found.append((line["sampler"], name, line["settings"][name]["reason"]))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.proofs",
        description="Proofs of every sampler, for every smooth potential.",
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--sampler", action="append", default=[], metavar="NAME", help="only this one; repeatable")
    only.add_argument("--references", action="store_true", help="only the samplers of this package")
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    try:
        named = [find_row(name) for name in given.sampler]
    except BadInput as error:
        parser.error(str(error))
    jax.config.update("jax_enable_x64", True)
    run(given.out, named or (SAMPLERS if given.references else (*SAMPLERS, *ADAPTERS)))
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
