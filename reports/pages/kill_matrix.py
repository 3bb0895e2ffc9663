"""The kill matrix: which checks catch which planted bugs, and how fast.

    python -m reports.pages.kill_matrix [--quick] [--first] [--defect NAME ...] [--check NAME ...] [--tier TIER ...]
                                  [--fraction F] [--out FILE]

Every planted bug of `checks.faults` is put through the checks of all tiers; each result is appended to FILE as a JSON
line as soon as it is there, and a run that is started again skips what FILE already has. A Markdown page of the same
name is written beside it. A kill is the verdict `fail`; `error` and `inconclusive` are none. Checks that sample use the
fraction F of their chains, so that they see effects that are larger by 1 / sqrt(F).
"""

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from tqdm import tqdm

from checks.core.candidate import Subject
from checks.core.check import Check
from checks.core.lookup import BadInput
from checks.core.result import Result
from checks.end_points.error_rates import fraction_of_chains
from checks.faults.fault import CLASSES, Defect
from checks.faults.registry import DEFECTS, find_defect
from checks.pytest_plugin.execute import default_seed, execute
from checks.registry import CHECKS, find_check
from reports.records.jsonl import ROOT, appended, commit, read
from samplers.entry import TIERS

PUBLISHED = ROOT / "reports" / "published" / "kill-matrix.jsonl"
ORDER = (
    "law",
    "order",
    "generator",
    "contract",
    "recipe",
    "invariance",
    "noise",
    "convergence",
    "geometry",
    "workload",
)
"""Tiers in the order in which they are run after the named kills: what decides the law without sampling comes first."""
FRACTION = 1 / 16
"""Of the chains of the checks that sample, by default: errors of 4% in a variance are seen."""


class Case(NamedTuple):
    """One check of one planted bug at given options on one target."""

    defect: Defect
    subject: Subject
    check: Check
    target: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies its line in a file of results."""
        return self.subject.name, self.check.name, self.target


def cases(defect: Defect, quick: bool = False) -> Iterator[Case]:
    """All cases of a planted bug, the named kill first.

    Args:
        defect: the bug.
        quick: only at the options of the named kill, each check on one target (that of the named kill if it suits).
    """
    kill = defect.killed_by
    yield Case(defect, defect.subject, find_check(kill.check), kill.target)
    options = [dict(kill.options)]
    if not quick:
        options += [dict(v) for v in ({}, *defect.row.variants) if dict(v) != options[0]]
    for number, chosen in enumerate(options):
        subject = Subject(defect.row, chosen, defect.name)
        for check in sorted(applicable(defect), key=lambda c: ORDER.index(c.tier)):
            if check.once and (chosen or number > 0):
                continue  # as in `pytest checks`: these run at the default options only
            targets = check.targets(subject)
            if quick:
                targets = (kill.target,) if kill.target in targets else targets[:1]
            for target in targets:
                if (number, check.name, target) != (0, kill.check, kill.target):
                    yield Case(defect, subject, check, target)


def applicable(defect: Defect) -> list[Check]:
    """The checks of the tiers that the row of a planted bug lists."""
    row = defect.row
    tiers = [t for t in TIERS if t in row.tiers and t not in row.unsupported]
    return [c for c in CHECKS if c.tier in tiers]


def decide(case: Case, revision: str, fraction: float = FRACTION) -> Result:
    """The result of a case, with the commit, the named kill and the fraction of the chains in its detail."""
    with fraction_of_chains(fraction):
        result = execute(case.check, case.subject, case.target, default_seed(case.defect.name))
    kill = case.defect.killed_by
    named = case.check.name == kill.check and case.target == kill.target and case.subject.options == kill.options
    line = f"python -m reports.pages.kill_matrix --defect {case.defect.name} --check {case.check.name} --out FILE.jsonl"
    return dataclasses.replace(
        result,
        detail={
            **result.detail,
            "commit": revision,
            "defect": case.defect.name,
            "named_kill": named,
            "fraction": fraction,
        },
        reproduction=line,
    )


def key(line: dict[str, Any]) -> tuple[str, str, str]:
    """What identifies a line."""
    return line["sampler"], line["check"], line["target"]


def run(
    chosen: Sequence[Defect],
    path: Path,
    quick: bool,
    first: bool,
    checks: Sequence[str] = (),
    fraction: float = FRACTION,
) -> None:
    """Run what the file lacks and append it, the named kills of all planted bugs before anything else.

    Args:
        chosen: the bugs.
        path: the file of JSON lines.
        quick: see `cases`.
        first: stop at the first kill of each bug.
        checks: names of the checks to run; none for all.
        fraction: of the chains of checks that sample.
    """
    done = {key(line): line["verdict"] for line in read(path)}
    killed = {line["detail"]["defect"] for line in read(path) if line["verdict"] == "fail"}
    plan = [list(cases(defect, quick)) for defect in chosen]
    queue = [case for row in plan for case in row[:1]] + [case for row in plan for case in row[1:]]
    queue = [case for case in queue if case.key not in done and (not checks or case.check.name in checks)]
    revision, last = commit(), None
    with appended(path) as append:
        for case in tqdm(queue, unit="check", disable=not sys.stderr.isatty(), mininterval=1.0):
            if first and case.defect.name in killed:
                continue
            if case.defect is not last:
                jax.clear_caches()  # compiled steps of a bug that is done
                last = case.defect
            result = decide(case, revision, fraction)
            if result.verdict == "fail":
                killed.add(case.defect.name)
            append(result.to_json())


# The page -----------------------------------------------------------------------------------------------------------


def page(lines: Iterable[dict[str, Any]], defects: Sequence[Defect] = DEFECTS) -> str:
    """The Markdown page of a file of results."""
    by_name: dict[str, list[dict[str, Any]]] = {d.name: [] for d in defects}
    for line in lines:
        if line["detail"]["defect"] in by_name:
            by_name[line["detail"]["defect"]].append(line)
    everything = [line for rows in by_name.values() for line in rows]
    kills = {name: [r for r in rows if r["verdict"] == "fail"] for name, rows in by_name.items()}
    run_at_all = [name for name, rows in by_name.items() if rows]
    survivors = [name for name in run_at_all if not kills[name]]
    times = [min(r["seconds"] for r in rows) for rows in kills.values() if rows]
    revisions = sorted({line["detail"]["commit"] for line in everything})
    versions = sorted({f"{k} {v}" for line in everything for k, v in line["versions"].items()})
    text = [
        "# Kill matrix",
        "",
        "Generated by `python -m reports.pages.kill_matrix` from the JSON lines of the same name; do not edit.",
        "",
        f"{len(run_at_all)} planted bugs of {len(by_name)}, {len(everything)} checks run; commit "
        f"{', '.join(r[:12] + ('+' if r.endswith('+') else '') for r in revisions)} (+: with uncommitted changes); "
        f"{', '.join(versions)}.",
        "",
        f"**Killed: {len(run_at_all) - len(survivors)} of {len(run_at_all)}.** Survivors: "
        f"{', '.join(f'`{s}`' for s in survivors) or 'none'}.",
        "",
    ]
    if all(line["detail"].get("named_kill") for line in everything):
        text += ["Only the named kill of each bug was run: the other cells, and `only by it`, say nothing yet.", ""]
    if times:
        text += [
            "Seconds of the fastest check that kills, compilation included, one process: "
            f"median {statistics.median(times):.1f}, largest {max(times):.1f}.",
            "",
        ]
    text += ["## By tier", "", "| tier | bugs that it was run on | killed by it | only by it |", "|---|---|---|---|"]
    tiers = [t for t in TIERS if any(line["tier"] == t for line in everything)]
    for tier in tiers:
        tried = [n for n, rows in by_name.items() if any(r["tier"] == tier and _ran(r) for r in rows)]
        mine = [n for n in tried if any(r["tier"] == tier for r in kills[n])]
        alone = [n for n in mine if all(r["tier"] == tier for r in kills[n])]
        text.append(f"| {tier} | {len(tried)} | {len(mine)} | {len(alone)} |")
    text += ["", "## By check", "", "| check | tier | bugs that it was run on | killed by it |", "|---|---|---|---|"]
    for check in CHECKS:
        tried = {r["detail"]["defect"] for r in everything if r["check"] == check.name and _ran(r)}
        mine = {r["detail"]["defect"] for r in everything if r["check"] == check.name and r["verdict"] == "fail"}
        if check.tier in tiers:
            text.append(f"| {check.name} | {check.tier} | {len(tried)} | {len(mine)} |")
    text += ["", "## By class", "", "| class | what hides the bug | bugs | killed |", "|---|---|---|---|"]
    for name, words in CLASSES.items():
        members = [d.name for d in defects if name in d.classes and by_name[d.name]]
        text.append(f"| {name} | {words} | {len(members)} | {sum(bool(kills[m]) for m in members)} |")
    text += [
        "",
        "## Bug by bug",
        "",
        "**bold**: the check that has to kill it. An empty cell: no check of the tier failed (or none applies).",
        "",
        f"| planted bug | error | source | {' | '.join(tiers)} | s |",
        f"|---|---|---|{'---|' * len(tiers)}---|",
    ]
    for defect in defects:
        cells = [_cell(defect, kills[defect.name], tier) for tier in tiers]
        seconds = f"{min(r['seconds'] for r in kills[defect.name]):.1f}" if kills[defect.name] else ""
        error = defect.error.replace("|", "\\|")
        text.append(f"| `{defect.name}` | {error} | {defect.source} | {' | '.join(cells)} | {seconds} |")
    return "\n".join(text) + "\n"


def _ran(line: dict[str, Any]) -> bool:
    return line["verdict"] != "not-applicable"


def _cell(defect: Defect, kills: list[dict[str, Any]], tier: str) -> str:
    names = dict.fromkeys(r["check"] for r in kills if r["tier"] == tier)
    return ", ".join(f"**{n}**" if n == defect.killed_by.check else n for n in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m reports.pages.kill_matrix", description="Which checks catch which planted bugs, and how fast."
    )
    parser.add_argument(
        "--quick", action="store_true", help="each check at the options and the target of the kill only"
    )
    parser.add_argument("--first", action="store_true", help="stop at the first kill of each planted bug")
    parser.add_argument("--defect", action="append", default=[], metavar="NAME", help="only this bug; repeatable")
    parser.add_argument("--check", action="append", default=[], metavar="NAME", help="only this check; repeatable")
    parser.add_argument("--tier", action="append", default=[], choices=TIERS, help="only this tier; repeatable")
    parser.add_argument(
        "--fraction", type=float, default=FRACTION, metavar="F", help="of the chains of checks that sample"
    )
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    if given.out.suffix != ".jsonl":
        parser.error(f"--out {given.out}: the name must end in .jsonl; the page is written beside it")
    if not 0 < given.fraction <= 1:
        parser.error(f"--fraction {given.fraction}: give a number above 0 and up to 1")
    try:
        chosen = [find_defect(name) for name in given.defect] or list(DEFECTS)
        for name in given.check:
            find_check(name)
    except (KeyError, BadInput) as error:
        parser.error(str(error.args[0]))
    jax.config.update("jax_enable_x64", True)
    named = given.check or [c.name for c in CHECKS if not given.tier or c.tier in given.tier]
    run(chosen, given.out, given.quick, given.first, named, given.fraction)
    text = page(read(given.out))
    given.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
