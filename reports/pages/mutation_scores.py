"""Systematic mutation: the share of small changes of the samplers' code that the checks notice, and how fast.

    python -m sgmcmc_verification.reports.pages.mutation_scores [--sampler NAME ...] [--tier TIER ...] [--chains F]
                               [--rounds K | --all]
                               [--survivors [--again] | --every-tier K | --prove] [--minutes M] [--budget S]
                               [--out FILE.jsonl] [--page]

A mutant is one generated change (`checks.mutation.operators`) of one function that the step of a sampler runs. It is
put through the checks of the selected tiers, cheapest first, until one says `fail` or `error` where it does not of the
unmutated sampler. A function that several samplers run is changed under one of them a round (the next in the order of
a hash); `--all` does every pair of a sampler and a change. `--every-tier K` puts each K-th mutant of FILE, by a hash,
through all selected tiers, dead or not, for the kill rates by tier. Each mutant is appended to FILE as a JSON line as
soon as it is decided, a run that is started again goes on where it stopped, and a Markdown page of the same name is
written beside it.
"""

import argparse
import functools
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.mutation.catalogue import Mutant, catalogue
from sgmcmc_verification.checks.mutation.operators import OPERATORS
from sgmcmc_verification.checks.mutation.survivors import REASONS
from sgmcmc_verification.checks.mutation.trial import Outcome, Runner
from sgmcmc_verification.checks.runner.execute import versions
from sgmcmc_verification.checks.runner.plan import parse_tiers
from sgmcmc_verification.reports.pages.out_file import publish
from sgmcmc_verification.reports.records.jsonl import ROOT, commit, read
from sgmcmc_verification.reports.records.results import renamed
from sgmcmc_verification.reports.templates import render
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS, TIERS, Row
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row

PUBLISHED = ROOT / "reports" / "published" / "mutation.jsonl"
ALIVE_OR_DEAD = ("killed", "survived", "open")
"""Statuses that count: mutants that are programs of their own with another law."""
NOT_COUNTED = ("stillborn", "identical", "duplicate")
"""No programs of their own: they cannot be traced, or are the program of the sampler or of another mutant."""
CHUNK = 8
"""Mutants of one sampler in a row, before the next sampler's turn."""
FORGET = 24
"""Mutants after which compiled programs are forgotten."""


# The run -----------------------------------------------------------------------------------------------------------


def rank(text: str) -> int:
    """A stable number of a text, uniform whatever the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def rounds(rows: Sequence[Row]) -> list[list[list[Mutant]]]:
    """Mutants of every change of the code, one per sampler, in the order in which they are tried.

    Grouped by the first sampler, so that the unmutated sampler is run once.
    """
    by_change: dict[str, list[Mutant]] = {}
    for row in tqdm(rows, desc="catalogue", disable=not sys.stderr.isatty()):
        for mutant in catalogue(row):
            by_change.setdefault(mutant.change, []).append(mutant)
    groups: dict[str, list[list[Mutant]]] = {}
    for mutants in by_change.values():
        ordered = sorted(mutants, key=lambda m: rank(m.id))
        groups.setdefault(ordered[0].sampler, []).append(ordered)
    return [sorted(group, key=lambda ms: rank(ms[0].change)) for group in groups.values()]


def turns(groups: list[list[list[Mutant]]]) -> Iterator[list[Mutant]]:
    """Changes in chunks of one sampler, the samplers in turn, so that what is there so far is a fair sample."""
    for start in range(0, max(map(len, groups), default=0), CHUNK):
        for group in groups:
            yield from group[start : start + CHUNK]


class Session:
    """One run: the runners of the samplers, what is done, and the file."""

    def __init__(
        self,
        path: Path,
        tiers: Sequence[str],
        minutes: float | None,
        budget: float = float("inf"),
        fraction: float = 1.0,
    ) -> None:
        self.path, self.tiers, self.budget, self.fraction = path, tuple(tiers), budget, fraction
        self.lines = read(path)
        if self.lines:  # without a last line that was cut off by an interruption
            kept = "".join(json.dumps(line, sort_keys=True) + "\n" for line in self.lines)
            path.write_text(kept, encoding="utf-8")
        self.done: dict[str, list[dict[str, Any]]] = {}
        for line in self.lines:
            self.done.setdefault(line["mutant"], []).append(line)
        self.open = {name for name, line in merge(self.lines).items() if line["status"] == "open"}
        self.runners: dict[str, Runner] = {}
        self.programs: dict[str, dict[str, str]] = {}
        for line in self.lines:
            if line["status"] not in NOT_COUNTED and line["program"]:
                self.programs.setdefault(line["sampler"], {})[line["program"]] = line["mutant"]
        self.revision = commit()
        self.end = time.monotonic() + 60 * minutes if minutes else float("inf")
        self.count = 0

    @property
    def late(self) -> bool:
        """True if the time that was given is over."""
        return time.monotonic() > self.end

    def runner(self, sampler: str) -> Runner:
        """Runner of a sampler."""
        if sampler not in self.runners:
            self.runners[sampler] = Runner(sampler_row(sampler))
        return self.runners[sampler]

    def settled(self, mutant: str, first: bool) -> dict[str, Any] | None:
        """Line that makes another trial needless: the mutant does not count, is dead, or met the tiers in vain.

        With `first` False only one that met every tier will do.
        """
        for line in reversed(self.done.get(mutant, [])):
            met = set(self.tiers) <= set(line["asked"]) and (first or line["every_tier"])
            if line["status"] not in ALIVE_OR_DEAD or met or (first and line["status"] == "killed"):
                return line
        return None

    def decide(self, mutant: Mutant, first: bool, again: bool = False) -> dict[str, Any]:
        """Line of a mutant, which is appended to the file if it is new; with `again` even if it is not."""
        before = self.settled(mutant.id, first)
        if before and not again:
            return before
        self.count += 1
        if self.count % FORGET == 0:
            jax.clear_caches()
        runner = self.runner(mutant.sampler)
        known = self.programs.setdefault(mutant.sampler, {})
        with fraction_of_chains(self.fraction):
            outcome = runner.trial(mutant, self.tiers, first, known, self.budget)
        line = to_line(mutant, outcome, self.tiers, first, self.revision, runner.row) | {"fraction": self.fraction}
        self.done.setdefault(mutant.id, []).append(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, sort_keys=True) + "\n")
        return line


def to_line(mutant: Mutant, out: Outcome, tiers: Sequence[str], first: bool, revision: str, row: Row) -> dict[str, Any]:
    """Line of a mutant and its outcome."""
    return {
        "sampler": mutant.sampler,
        "mutant": mutant.id,
        "change": mutant.change,
        "file": mutant.place.module.removeprefix("sgmcmc_verification.").replace(".", "/") + ".py",
        "line": mutant.line,
        "function": mutant.place.qualname,
        "operator": mutant.operator,
        "before": mutant.before,
        "after": mutant.after,
        "status": out.status,
        "twin": out.twin,
        "proof": out.proof,
        "program": out.program,
        "settings": list(out.settings),
        "kills": [{**kill._asdict(), "options": dict(kill.options)} for kill in out.kills],
        "tiers": out.tiers,
        "asked": list(tiers),
        "every_tier": not first,
        "undecided": out.undecided,
        "checks": out.checks,
        "seconds": round(out.seconds, 2),
        "commit": revision,
        "versions": versions(Subject(row)),
    }


def run(session: Session, rows: Sequence[Row], wanted: int | None) -> None:
    """Run the catalogue of some samplers.

    Args:
        session: where to.
        rows: the samplers.
        wanted: on how many samplers a change is tried, those left out on which it changes nothing; None for all.
    """
    groups = rounds(rows)
    for number in range(1, (wanted or len(rows)) + 1):
        changes = list(turns(groups))
        for mutants in tqdm(changes, desc=f"round {number}", unit="change", disable=not sys.stderr.isatty()):
            counted = 0
            for mutant in mutants:
                if counted == number:
                    break
                if session.late:
                    return
                line = session.decide(mutant, first=True)
                counted += line["status"] not in NOT_COUNTED


def rerun_survivors(session: Session, rows: Sequence[Row], again: bool = False) -> None:
    """Put the survivors of the file, and what was left open, through the selected tiers.

    With `again` also those that met these tiers, which have another check since.
    """
    for mutant in _of_file(session, rows, ("survived", "open"), lambda _: True):
        session.decide(mutant, first=True, again=again or mutant.id in session.open)


def by_tier(session: Session, rows: Sequence[Row], every: int) -> None:
    """Put each `every`-th counted mutant of the file, by a hash, through all selected tiers, dead or not."""
    for mutant in _of_file(session, rows, ALIVE_OR_DEAD, lambda name: rank(name) % every == 0):
        session.decide(mutant, first=False)


def _of_file(
    session: Session, rows: Sequence[Row], statuses: Sequence[str], wanted: Callable[[str], bool]
) -> Iterator[Mutant]:
    """Mutants of the file that have one of some statuses and still exist, until the time is over."""
    names = {row.name for row in rows}
    lines = merge(session.lines).items()
    chosen = [m for m, line in lines if line["status"] in statuses and line["sampler"] in names and wanted(m)]
    found = {mutant.id: mutant for row in rows for mutant in catalogue(row)}
    for name in tqdm(chosen, unit="mutant", disable=not sys.stderr.isatty()):
        if session.late:
            return
        if name in found:
            yield found[name]


def unproved(session: Session, rows: Sequence[Row]) -> list[str]:
    """Mutants of the file that are called equivalent and whose proof does not go through any more."""
    from sgmcmc_verification.checks.mutation.equivalence import proof

    names = {row.name: row for row in rows}
    claimed = {k: r for k, r in merge(session.lines).items() if r["status"] == "equivalent" and r["sampler"] in names}
    found = {mutant.id: mutant for row in rows for mutant in catalogue(row)}
    lost = []
    for name, line in tqdm(claimed.items(), unit="proof", disable=not sys.stderr.isatty()):
        if name not in found or proof(names[line["sampler"]], found[name]) is None:
            lost.append(name)
    return lost


# The page -----------------------------------------------------------------------------------------------------------


def merge(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One line per mutant: later runs add tiers and kills; a kill in any tier makes it killed."""
    merged: dict[str, dict[str, Any]] = {}
    for line in lines:
        before = merged.get(line["mutant"])
        merged[line["mutant"]] = line if before is None else _joined(before, line)
    return merged


def _joined(before: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """Line of a mutant from what is known of it and a later run."""
    joined = before | line
    joined["kills"] = before["kills"] + [kill for kill in line["kills"] if kill not in before["kills"]]
    joined["undecided"] = before["undecided"] + line["undecided"]
    joined["every_tier"] = before["every_tier"] or line["every_tier"]
    for tier in joined["tiers"] | before["tiers"]:
        met = {before["tiers"].get(tier), line["tiers"].get(tier)} - {None}
        joined["tiers"] = joined["tiers"] | {tier: any(met) if met else None}
    if line["status"] in ALIVE_OR_DEAD:
        joined["status"] = "killed" if joined["kills"] else line["status"]
        joined["seconds"] = before["seconds"] + (0 if before["kills"] else line["seconds"])
    return joined


def rate(killed: int, total: int) -> str:
    """`97.3% (71 of 73)`."""
    return f"{100 * killed / total:.1f}% ({killed} of {total})" if total else "none"


class Group(NamedTuple):
    """Some mutants, after `merge`."""

    tried: list[dict[str, Any]]

    @property
    def counted(self) -> list[dict[str, Any]]:
        """Programs of their own with another law."""
        return [m for m in self.tried if m["status"] in ALIVE_OR_DEAD]

    @property
    def killed(self) -> list[dict[str, Any]]:
        """Mutants with a kill."""
        return [m for m in self.tried if m["status"] == "killed"]

    @property
    def alive(self) -> list[dict[str, Any]]:
        """Counted mutants without a kill."""
        return [m for m in self.counted if m["status"] != "killed"]

    @property
    def rate(self) -> str:
        """Share of the counted mutants that is killed."""
        return rate(len(self.killed), len(self.counted))

    @property
    def seconds(self) -> list[float]:
        """Times of the first kills."""
        return [m["seconds"] for m in self.killed]

    def having(self, field: str, value: str) -> "Group":
        """Mutants whose field has a value."""
        return Group([m for m in self.tried if m[field] == value])


def page(lines: Sequence[dict[str, Any]]) -> str:
    """Markdown page of a file of mutants."""
    mutants = Group(list(merge(lines).values()))
    full = [m for m in mutants.counted if m["every_tier"]]
    by_deterministic = [m for m in mutants.killed if any(k["tier"] in DETERMINISTIC_TIERS for k in m["kills"])]
    equivalent = mutants.having("status", "equivalent").tried
    first = [renamed(mutant["kills"][0]) for mutant in mutants.killed]
    return render(
        "mutation.md.j2",
        lines=lines,
        all=mutants,
        deterministic=rate(len(by_deterministic), len(mutants.counted)),
        statuses=Counter(m["status"] for m in mutants.tried),
        ninth_decile=functools.partial(np.quantile, q=0.9, method="inverted_cdf"),
        proofs=Counter(m["proof"] for m in equivalent),
        full=full,
        tiers=[_of_tier(tier, full, mutants.killed) for tier in TIERS],
        checks=Counter(kill["check"] for kill in first).most_common(),
        statements=Counter(kill["statement"] for kill in first).most_common(),
        operators=[(name, change, mutants.having("operator", name)) for name, change in OPERATORS.items()],
        samplers=[(row.name, mutants.having("sampler", row.name)) for row in SAMPLERS],
        reasons=REASONS,
        excerpt=excerpt,
    )


def _of_tier(tier: str, full: Sequence[dict[str, Any]], killed: Sequence[dict[str, Any]]) -> tuple[str, int, str, int]:
    """Row of a tier: mutants that met all its checks, share that it kills, first kills by it."""
    met = [m["tiers"][tier] for m in full if m["tiers"].get(tier) is not None]
    return tier, len(met), rate(sum(met), len(met)), sum(m["kills"][0]["tier"] == tier for m in killed)


def excerpt(source: str, width: int = 90) -> str:
    """Piece of code for a cell of a table: one line of at most `width` characters."""
    text = " ".join(source.split()).replace("|", "\\|")
    return text if len(text) <= width else text[: width - 3] + "..."


def parser() -> argparse.ArgumentParser:
    """Parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m sgmcmc_verification.reports.pages.mutation_scores",
        description="Which small changes of the samplers' code the checks notice.",
    )
    add = made.add_argument
    add("--sampler", action="append", default=[], metavar="NAME", help="only mutants of this sampler; repeatable")
    add("--tier", action="append", default=[], metavar="TIER", help="default: deterministic; repeatable")
    add("--rounds", type=int, default=1, metavar="K", help="try each change on K samplers that run it (default 1)")
    add("--all", action="store_true", help="try each change on every sampler that runs it")
    add("--chains", type=float, default=1.0, metavar="F", help="run the statistical checks with F of their chains")
    add("--every-tier", type=int, default=0, metavar="K", help="only put one mutant in K of the file through all tiers")
    add(
        "--survivors", action="store_true", help="put survivors and open mutants of the file through the selected tiers"
    )
    add(
        "--again",
        action="store_true",
        help="with --survivors: those too that met these tiers, for the sake of a new check",
    )
    add("--prove", action="store_true", help="run the proofs of all equivalent mutants of the file again")
    add("--minutes", type=float, metavar="M", help="stop after M minutes; the same command goes on")
    add("--budget", type=float, default=float("inf"), metavar="S", help="leave a mutant open after S processor seconds")
    add("--page", action="store_true", help="only write the page")
    add("--out", type=Path, default=PUBLISHED, metavar="FILE.jsonl", help="default: the published file")
    return made


def refusal(given: argparse.Namespace) -> str | None:
    """Reason to refuse arguments; None if they can be used."""
    if given.out.suffix != ".jsonl":
        return f"--out {given.out}: the name must end in .jsonl; the page is written beside it"
    if given.again and not given.survivors:
        return "--again: goes with --survivors only"
    if not 0 < given.chains <= 1:
        return f"--chains {given.chains}: give a number above 0 and up to 1"
    if given.survivors and given.every_tier:
        return "--survivors and --every-tier: one at a time"
    for name, least in (("rounds", 1), ("every_tier", 0)):
        if getattr(given, name) < least:
            return f"--{name.replace('_', '-')} {getattr(given, name)}: must be at least {least}"
    return None


def _run(given: argparse.Namespace, session: Session, rows: Sequence[Row]) -> None:
    if given.survivors:
        rerun_survivors(session, rows, given.again)
    elif given.every_tier:
        by_tier(session, rows, given.every_tier)
    else:
        run(session, rows, None if given.all else given.rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    given = parser().parse_args(arguments)
    if reason := refusal(given):
        parser().error(reason)
    try:
        rows = [sampler_row(name) for name in given.sampler] or list(SAMPLERS)
        tiers = parse_tiers(given.tier)
    except (KeyError, BadInput) as error:
        parser().error(str(error.args[0]))
    jax.config.update("jax_enable_x64", True)
    if given.prove:
        lost = unproved(Session(given.out, tiers, given.minutes), rows)
        print("\n".join(f"not proved: {name}" for name in lost) or "every equivalent mutant is proved to be one")
        return 1 if lost else 0
    if not given.page:
        _run(given, Session(given.out, tiers, given.minutes, given.budget, given.chains), rows)
    return publish(page(read(given.out)), given.out)


if __name__ == "__main__":
    raise SystemExit(main())
