"""One mutant through the checks: in the order of their cost, until it is killed."""

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Statement
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.mutation.catalogue import Mutant
from sgmcmc_verification.checks.mutation.equivalence import proof
from sgmcmc_verification.checks.mutation.program import Setting, fingerprint, further_settings, settings
from sgmcmc_verification.checks.registry import STATEMENTS
from sgmcmc_verification.checks.runner.execute import default_seed, execute
from sgmcmc_verification.samplers.entry import Row

Status = Literal["stillborn", "identical", "duplicate", "equivalent", "killed", "survived", "open"]
SOUND = ("pass", "not-applicable")
"""Verdict of the unmutated sampler in a case that counts as a kill."""
KILLS = ("fail", "error")
CLAIMED = ("sgmcmc_verification.samplers.riemannian.metrics", "sgmcmc_verification.samplers.dynamics.complete_recipe")
"""Modules of the step that the declared dynamics use too."""
QUICK = 6
"""The first of the screening order are run on one target before the rest: they kill most for their cost."""
PATIENCE = 4
"""Cases that are run in vain before a proof of equivalence is tried."""


class Case(NamedTuple):
    """A check of a mutant at given options on one target."""

    check: Statement
    options: Mapping[str, Any]
    target: str


class Kill(NamedTuple):
    """A case that the mutant fails and the unmutated sampler does not."""

    check: str
    tier: str
    target: str
    options: Mapping[str, Any]
    verdict: str
    reason: str


@dataclass
class Outcome:
    """Outcome of the trial of a mutant.

    Attributes:
        status: `stillborn` if it cannot be traced at any setting, `identical` if its traced step is that of the
            unmutated sampler at every setting, `duplicate` if it is that of another mutant, `equivalent` if it is
            proved to have the same law, else `killed`, `survived`, or `open` if its time was over before all checks.
        proof: the family of the proof of an equivalent mutant.
        kills: the first kill of each tier.
        tiers: tier -> True (killed), False (all its cases were run in vain), None (not run to the end).
        undecided: cases that were inconclusive where the unmutated sampler passes.
        checks: number of cases that were run.
        seconds: of processor time until the first kill (or until the end), building and tracing included.
        settings: numbers of the settings at which the traced step differs, of `further_settings` if of no other.
        program: a hash of the traced step at all settings.
        twin: the mutant that is the same program.
    """

    status: Status
    proof: str | None = None
    kills: list[Kill] = field(default_factory=list)
    tiers: dict[str, bool | None] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)
    checks: int = 0
    seconds: float = 0.0
    settings: tuple[int, ...] = ()
    program: str = ""
    twin: str | None = None


class Clock(NamedTuple):
    """Processor time at which a trial began, and its budget in seconds."""

    began: float
    budget: float

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.process_time() - self.began


class Runner:
    """Runs mutants of one row; what the unmutated sampler gets is computed once."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.settings = settings(row)
        self.further = further_settings(row)
        self.prints = self._fingerprints(row, self.settings)
        self._verdicts: dict[tuple[str, str, str], str] = {}
        self._subjects: dict[str, Subject] = {}

    def verdict(self, case: Case) -> str:
        """The verdict of the unmutated sampler."""
        key = (case.check.name, repr(sorted(case.options.items())), case.target)
        if key not in self._verdicts:
            subject = self._subjects.setdefault(key[1], Subject(self.row, dict(case.options)))
            self._verdicts[key] = self._execute(case, subject).verdict
        return self._verdicts[key]

    def _execute(self, case: Case, subject: Subject) -> Result:
        return execute(case.check, subject, case.target, default_seed(self.row.name))

    def trial(
        self,
        mutant: Mutant,
        tiers: Sequence[str],
        first: bool = True,
        programs: dict[str, str] | None = None,
        budget: float = float("inf"),
    ) -> Outcome:
        """Put a mutant through the checks of some tiers.

        Args:
            mutant: of this row.
            tiers: names of tiers.
            first: stop at the first kill, else at the first kill of each tier.
            programs: program -> the mutant that it belongs to, of those that have been tried; this one is added.
            budget: processor seconds after which a mutant that is not dead is left open.
        """
        began = time.process_time()
        try:
            row = mutant.row(self.row)
        except Exception:
            return Outcome("stillborn", seconds=time.process_time() - began)
        prints = self._fingerprints(row, self.settings)
        if all(p.startswith("raises") for p in prints.values()):
            return Outcome("stillborn", seconds=time.process_time() - began)
        differing = tuple(i for i, p in prints.items() if p != self.prints[i])
        if not differing:
            right, more = (self._fingerprints(r, self.further) for r in (self.row, row))
            differing = tuple(len(self.settings) + i for i in more if more[i] != right[i])
            prints |= {i: more[i - len(self.settings)] for i in differing}
        if not differing:
            return Outcome("identical", seconds=time.process_time() - began)
        program = hashlib.sha256(repr(sorted(prints.items())).encode()).hexdigest()[:16]
        known = {} if programs is None else programs
        if known.setdefault(program, mutant.id) != mutant.id:
            return Outcome("duplicate", seconds=time.process_time() - began, program=program, twin=known[program])
        out = Outcome("survived", settings=differing, program=program, tiers=dict.fromkeys(tiers))
        if mutant.place.module not in CLAIMED:
            tiers = [t for t in tiers if t != "recipe"]  # of the declared H, D and Q, which are what they were
        self._meet(list(self.cases(row, differing, tiers, mutant)), row, mutant, out, first, Clock(began, budget))
        if out.status == "killed" and first:
            return out
        if out.status in ("survived", "open"):
            out.seconds = time.process_time() - began
        if out.status != "open":
            out.tiers |= dict.fromkeys(set(out.tiers) - set(tiers), False)
        return out

    @staticmethod
    def _fingerprints(row: Row, settings: Sequence[Setting]) -> dict[int, str]:
        """Of the traced step of a mutant at each setting; the exception where it cannot be traced."""
        prints: dict[int, str] = {}
        for i, setting in enumerate(settings):
            try:
                prints[i] = fingerprint(row, setting)
            except Exception as error:
                prints[i] = f"raises {type(error).__name__}"
        return prints

    def _meet(self, pending: list[Case], row: Row, mutant: Mutant, out: Outcome, first: bool, clock: Clock) -> None:
        """Run cases in turn, up to the first kill, a proof or the end of the budget; what is found goes into `out`."""
        subjects: dict[str, Subject] = {}
        for number, case in enumerate(pending):
            tier = case.check.tier
            if out.tiers[tier]:
                continue
            if out.status == "survived" and self._ends(mutant, out, clock):
                return
            subject = subjects.setdefault(repr(sorted(case.options.items())), Subject(row, dict(case.options)))
            if self._kills(case, subject, out):
                if out.status == "survived":
                    out.status, out.seconds = "killed", clock.spent
                if first:
                    return
            if not out.tiers[tier] and not any(c.check.tier == tier for c in pending[number + 1 :]):
                out.tiers[tier] = False

    def _ends(self, mutant: Mutant, out: Outcome, clock: Clock) -> bool:
        """True if a mutant that has survived so far is proved equivalent, or its budget is spent."""
        if out.checks == PATIENCE and out.settings[0] < len(self.settings):
            out.proof = proof(self.row, mutant)
            if out.proof:
                out.status, out.seconds, out.tiers = "equivalent", clock.spent, {}
                return True
        if out.checks > PATIENCE and clock.spent > clock.budget:
            out.status = "open"
            return True
        return False

    def _kills(self, case: Case, subject: Subject, out: Outcome) -> bool:
        """True if a case fails that the unmutated sampler does not; an undecided one is noted."""
        result = self._execute(case, subject)
        out.checks += 1
        check = case.check
        if result.verdict in KILLS and self.verdict(case) in SOUND:
            out.tiers[check.tier] = True
            out.kills.append(
                Kill(check.name, check.tier, case.target, case.options, result.verdict, result.reason[:200])
            )
            return True
        if result.verdict == "inconclusive" and self.verdict(case) == "pass":
            out.undecided.append(f"{check.name} on {case.target}: {result.reason[:120]}")
        return False

    def cases(self, row: Row, differing: Sequence[int], tiers: Sequence[str], mutant: Mutant) -> Iterator[Case]:
        """The cases of a mutant: the checks that kill most at all options that show it, then the others.

        Further targets are met at the first of these options only: of a variant it is the value that is new.
        """
        shown = [(*self.settings, *self.further)[i].options for i in differing]
        rest: list[Case] = []
        if all(shown):  # the defaults do not show it: it is their comparison with the options that may
            for check in applicable(row, tiers):
                if check.name == "every_option_matters":
                    yield from (Case(check, {}, name) for name in check.targets(Subject(self.row))[:1])
        for place, chosen in enumerate(o for i, o in enumerate(shown) if o not in shown[:i]):
            for check in sorted(applicable(row, tiers), key=lambda c: _priority(c, mutant)):
                if check.once and chosen:
                    continue
                names = _ordered(check.applies_to(Subject(self.row, dict(chosen))))
                found = [Case(check, chosen, name) for name in names]
                if (check.screening is not None and check.screening < QUICK) or _meant(check, mutant):
                    yield from found[:1]
                    found = found[1:]
                rest += found if place == 0 else found[:1]
        seen: set[str] = set()
        later = [c for c in rest if c.check.name in seen or seen.add(c.check.name)]
        yield from (c for c in rest if c not in later)
        yield from later


def _ordered(names: Sequence[str]) -> tuple[str, ...]:
    """Two dimensions first: one-dimensional Gaussians show less."""
    return tuple(sorted(names, key=lambda name: name != "gaussian-correlated-2d"))


def _priority(check: Statement, mutant: Mutant) -> tuple[bool, float, float]:
    place = math.inf if check.screening is None else check.screening
    return not _meant(check, mutant), place, check.cost


def _meant(check: Statement, mutant: Mutant) -> bool:
    """True for the check that is about what was changed; it is tried first.

    It comes before the proof that another metric has the same law: what is meant is the metric by its formula.
    """
    return mutant.operator in check.about or mutant.place.module in check.about


@cache
def _of_tiers(tiers: tuple[str, ...]) -> tuple[Statement, ...]:
    return tuple(c for c in STATEMENTS if c.tier in tiers)


def applicable(row: Row, tiers: Sequence[str]) -> list[Statement]:
    """The checks of some tiers that the row lists."""
    return [c for c in _of_tiers(tuple(tiers)) if c.tier in row.tiers and c.tier not in row.unsupported]
