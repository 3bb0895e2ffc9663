"""Kill matrix: which statements, and which checks, catch which planted bugs, and how fast.

    python -m sgmcmc_verification.reports.pages.kill_matrix [--quick] [--first] [--defect NAME ...]
                               [--check NAME ...] [--tier TIER ...]
                                  [--fraction F] [--out FILE]

Every planted bug of `checks.faults` is put through the statements of all tiers; each result is appended to FILE as a
JSON line as soon as it is there, and a run that is started again skips what FILE already has. A Markdown page of the
same name is written beside it. A kill is the verdict `fail`; `error` and `inconclusive` are none. Statements that
sample use the fraction F of their chains, so that they see effects that are larger by 1 / sqrt(F). The page counts for
each check, and for each statement of it, the bugs that nothing else kills.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from tqdm import tqdm

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Statement
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.faults.fault import CLASSES, Defect
from sgmcmc_verification.checks.faults.registry import DEFECTS, find_defect
from sgmcmc_verification.checks.registry import CHECKS, STATEMENTS, find_statement
from sgmcmc_verification.checks.runner.execute import default_seed, execute, statements_of
from sgmcmc_verification.reports.pages.out_file import publish, require_lines
from sgmcmc_verification.reports.records.jsonl import ROOT, appended, commit
from sgmcmc_verification.reports.records.results import read_renamed as read
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.entry import TIERS

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
"""Default share of the chains of the statements that sample: errors of 4% in a variance are seen."""
ALONE = 2
"""Planted bugs that a check kills alone, or `Check.stands` says why it is kept."""


Key = tuple[str, str, str]
"""Sampler with its options, statement and target: the identity of a line."""


class Case(NamedTuple):
    """One statement about one planted bug at given options on one target."""

    defect: Defect
    subject: Subject
    statement: Statement
    target: str

    @property
    def key(self) -> Key:
        """Identity of its line in a file of results."""
        return self.subject.name, self.statement.name, self.target


def cases(defect: Defect, quick: bool = False) -> Iterator[Case]:
    """All cases of a planted bug, the named kill first.

    Args:
        defect: the bug.
        quick: only at the options of the named kill, each statement on one target (that of the named kill if it suits).
    """
    kill = defect.killed_by
    yield Case(defect, defect.subject, find_statement(kill.check), kill.target)
    options = [dict(kill.options)]
    if not quick:
        options += filter(options[0].__ne__, map(dict, ({}, *defect.row.variants)))
    statements = sorted(applicable(defect), key=lambda s: ORDER.index(s.tier))
    for number, chosen in enumerate(options):
        subject = Subject(defect.row, chosen, defect.name)
        for statement in statements:
            if statement.once and (chosen or number > 0):
                continue  # as in `pytest checks`: these run at the default options only
            targets = statement.applies_to(subject)
            if quick:
                targets = (kill.target,) if kill.target in targets else targets[:1]
            for target in targets:
                if (number, statement.name, target) != (0, find_statement(kill.check).name, kill.target):
                    yield Case(defect, subject, statement, target)


def applicable(defect: Defect) -> list[Statement]:
    """Statements of the tiers that the row of a planted bug lists."""
    row = defect.row
    tiers = [t for t in TIERS if t in row.tiers and t not in row.unsupported]
    return [s for s in STATEMENTS if s.tier in tiers]


def decide(case: Case, revision: str, fraction: float = FRACTION) -> Result:
    """Result of a case, with the commit, the named kill and the fraction of the chains in its detail."""
    with fraction_of_chains(fraction):
        result = execute(case.statement, case.subject, case.target, default_seed(case.defect.name))
    kill, name = case.defect.killed_by, case.statement.name
    named = find_statement(kill.check) is case.statement and case.target == kill.target
    named = named and case.subject.options == kill.options
    line = "python -m sgmcmc_verification.reports.pages.kill_matrix"
    line += f" --defect {case.defect.name} --check {name} --out FILE.jsonl"
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


def key(line: dict[str, Any]) -> Key:
    """Identity of a line."""
    return line["sampler"], line["statement"], line["target"]


def _queue(chosen: Sequence[Defect], done: set[Key], quick: bool, names: Sequence[str]) -> list[Case]:
    """Cases of some bugs that are not done, the named kills of all bugs first."""
    plan = [list(cases(defect, quick)) for defect in chosen]
    queue = [case for row in plan for case in row[:1]] + [case for row in plan for case in row[1:]]
    return [case for case in queue if case.key not in done and (not names or case.statement.name in names)]


def run(
    chosen: Sequence[Defect],
    path: Path,
    quick: bool,
    first: bool,
    names: Sequence[str] = (),
    fraction: float = FRACTION,
) -> None:
    """Run what the file lacks and append it, the named kills of all planted bugs before anything else.

    Args:
        chosen: the bugs.
        path: the file of JSON lines.
        quick: see `cases`.
        first: stop at the first kill of each bug.
        names: of the statements to run; none for all.
        fraction: of the chains of statements that sample.
    """
    lines = read(path)
    killed = {line["detail"]["defect"] for line in lines if line["verdict"] == "fail"}
    queue = _queue(chosen, {key(line) for line in lines}, quick, names)
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


class Bug(NamedTuple):
    """A planted bug and its lines."""

    defect: Defect
    lines: list[dict[str, Any]]

    @property
    def kills(self) -> list[dict[str, Any]]:
        """Lines of the statements that killed it."""
        return [line for line in self.lines if line["verdict"] == "fail"]

    @property
    def seconds(self) -> float:
        """Time of the fastest kill."""
        return min(line["seconds"] for line in self.kills)

    def cell(self, tier: str) -> str:
        """Statements of a tier that killed it, the named one in bold."""
        names = dict.fromkeys(line["statement"] for line in self.kills if line["tier"] == tier)
        named = find_statement(self.defect.killed_by.check).name
        return ", ".join(f"**{name}**" if name == named else name for name in names)


class Count(NamedTuple):
    """Numbers of bugs that some statements were run on, that they killed, and that no other statement killed."""

    tried: int
    killed: int
    alone: int


def count(bugs: Sequence[Bug], field: str, value: str) -> Count:
    """Count the bugs of the statements whose `field`, "tier", "check" or "statement", has a value."""
    mine = lambda line: line[field] == value and line["verdict"] not in ("not-applicable", "out-of-reach")
    tried = sum(any(map(mine, bug.lines)) for bug in bugs)
    killed = [bug.kills for bug in bugs if any(map(mine, bug.kills))]
    return Count(tried, len(killed), sum(all(map(mine, kills)) for kills in killed))


def by_defect(lines: Iterable[dict[str, Any]], defects: Sequence[Defect]) -> list[Bug]:
    """All planted bugs with their lines; lines of bugs that no longer exist are dropped."""
    bugs = {defect.name: Bug(defect, []) for defect in defects}
    for line in lines:
        if line["detail"]["defect"] in bugs:
            bugs[line["detail"]["defect"]].lines.append(line)
    return list(bugs.values())


def page(lines: Iterable[dict[str, Any]], defects: Sequence[Defect] = DEFECTS) -> str:
    """Markdown page of a file of results."""
    bugs = by_defect(lines, defects)
    tried = [bug for bug in bugs if bug.lines]
    everything = [line for bug in tried for line in bug.lines]
    ran = {line["tier"] for line in everything}
    return render(
        "kill-matrix.md.j2",
        bugs=bugs,
        tried=tried,
        lines=everything,
        only_named=all(line["detail"].get("named_kill") for line in everything),
        tiers={tier: count(tried, "tier", tier) for tier in TIERS if tier in ran},
        checks=[(c, count(tried, "check", c.name)) for c in CHECKS if {s.tier for s in c.statements} & ran],
        statements=[
            (s, check, count(tried, "statement", s.name)) for check in CHECKS for s in check.statements if s.tier in ran
        ],
        least=ALONE,
        classes=CLASSES,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.kill_matrix",
        description="Which checks catch which planted bugs, and how fast.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="each statement at the options and the target of the kill only"
    )
    parser.add_argument("--first", action="store_true", help="stop at the first kill of each planted bug")
    parser.add_argument("--defect", action="append", default=[], metavar="NAME", help="only this bug; repeatable")
    parser.add_argument(
        "--check", action="append", default=[], metavar="NAME", help="only this check or statement; repeatable"
    )
    parser.add_argument("--tier", action="append", default=[], choices=TIERS, help="only this tier; repeatable")
    parser.add_argument(
        "--fraction", type=float, default=FRACTION, metavar="F", help="of the chains of statements that sample"
    )
    parser.add_argument("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    given = parser.parse_args(arguments)
    require_lines(parser, given.out)
    if not 0 < given.fraction <= 1:
        parser.error(f"--fraction {given.fraction}: give a number above 0 and up to 1")
    try:
        chosen = [find_defect(name) for name in given.defect] or list(DEFECTS)
        named = [statement.name for name in given.check for statement in statements_of(name)]
    except (KeyError, BadInput) as error:
        parser.error(str(error.args[0]))
    jax.config.update("jax_enable_x64", True)
    named = named or [s.name for s in STATEMENTS if not given.tier or s.tier in given.tier]
    run(chosen, given.out, given.quick, given.first, named, given.fraction)
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
