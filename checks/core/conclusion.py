"""The one conclusion from the results of a sampler: its law, its conduct, and what was not examined.

Badge, summary, comparison, findings, site and exit code all take it from here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sgmcmc_verification.checks.core.obligations import obligation
from sgmcmc_verification.checks.core.result import Result

Law = Literal["holds", "violated", "undecided", "not examined"]
Word = Literal["pass", "fail", "inconclusive", "fault", "error", "known", "part"]
WORDS: dict[Word, str] = {
    "pass": "the law holds, with every obligation met, and the conduct has no major fault",
    "fail": "the law is violated",
    "inconclusive": "the law is undecided: something that has to be shown was not",
    "fault": "the law holds, and the conduct has a major fault",
    "error": "the sampler raised",
    "known": "the law is violated, as the file of expected failures says",
    "part": "nothing is wrong in the part that was run; the law as a whole was not examined",
}
"""In one word, and what it says."""
PASS: Word = "pass"
GOOD: tuple[Word, ...] = ("pass", "known", "part")
"""Words that do not fail a run."""
MAJOR, MINOR = "major", "minor"
"""Severities of a fault of conduct: a minor one fails no run."""
ABOUT_LAW = ("law", "order", "dynamics")
SHOWN = "shown"
"""Detail of a proof: the positions for which it was finished."""
CONTRADICTS = "contradicts"
"""Detail of a result that fails although a proof says that it cannot: the name of the proof."""
USUAL = "usual step"
"""Detail of a law on a Gaussian: the error of a variance at the usual step size, and the words for it."""
RUNS = "law_of_runs"
SAMPLED = (RUNS, "law_of_steps", "law_of_several_steps", "law_of_states")
"""Statements that decide by sampling what the others leave open."""


@dataclass(frozen=True)
class Plan:
    """The statements and obligations that a run sets out to decide for one sampler: written before anything runs.

    Attributes:
        cases: number of statements to be decided.
        due: names of the obligations that its law has to meet.
        order: of the invariant law that is claimed; None if none is.
        temperature: that is claimed.
        notes: what will not be examined, whatever comes out: options that cannot be varied, dimensions.
        part: why the run is a part of all statements only; empty if it is not.
        foreign: no registry knows the sampler, and the values of its options are made up.
        off: names of options that are off by default, and were turned on.
        reading: the convention that was read of an optimiser, in the user's terms; empty for other samplers.
        left_out: statements that its tags leave out, each with the tag and what it means.
        place: file and first line of its step, as far as they are known.
    """

    cases: int
    due: tuple[str, ...] = ()
    order: int | None = None
    temperature: float = 1.0
    notes: tuple[str, ...] = ()
    part: str = ""
    foreign: bool = False
    off: tuple[str, ...] = ()
    reading: str = ""
    left_out: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Fault:
    """A fault of conduct: the statement that failed, its severity, and the reason."""

    statement: str
    severity: str
    reason: str


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of one sampler, all its options together.

    Attributes:
        sampler: name of the row.
        word: in one word.
        law: `holds`, `violated`, `undecided` or `not examined`.
        order: to which the law holds, as claimed; None where it is exact or does not hold.
        violated: statements about the law that fail, each with its equation.
        known: those of them that the expected failures cover.
        open: what keeps the law from being decided, in words.
        met: names of the obligations that were met.
        faults: of conduct.
        excused: names of statements whose faults the expected failures cover.
        not_examined: branches, options, far points, dimensions.
        smallest: check -> the smallest effect that its passes would have seen, with its unit.
        proved: positions for which the law was proved, for every smooth potential.
        disagreements: numbers that contradict a proof: an error of the suite, whatever the sampler is.
        diagnosis: what is wrong in the user's terms; empty where nothing is, or nothing simple explains it.
        polynomial: of the step, which the diagnosis was read from; empty if it was not.
        bias: at the usual step size, of a law that is right as h -> 0; empty where it is not known.
        left_out: statements that tags of the sampler leave out, each with the tag and what it means.
    """

    sampler: str
    word: Word
    law: Law
    order: int | None = None
    violated: tuple[tuple[str, str], ...] = ()
    known: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    met: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    excused: tuple[str, ...] = ()
    not_examined: tuple[str, ...] = ()
    smallest: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    proved: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    diagnosis: str = ""
    polynomial: str = ""
    bias: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """True if it does not fail a run."""
        return self.word in GOOD

    def law_in_words(self, temperature: float = 1.0) -> str:
        """`holds to order 2`, `violated`, ..."""
        if self.law != "holds":
            return f"{self.law} (known)" if self.violated == () and self.known else self.law
        to = "holds" if self.order is None else f"holds to order {self.order}"
        return to if temperature == 1.0 else f"{to}, at temperature {temperature:g}"


@dataclass(frozen=True)
class Judged:
    """A result with what the expected failures say of it: `pass`, `fail`, ..., `known`, or `unexpected pass`."""

    result: Result
    kind: str


def conclude(sampler: str, results: Sequence[Judged], plan: Plan | None = None, law_only: bool = False) -> Conclusion:
    """The conclusion from the results of one row.

    The law is violated if a statement about it fails. It is undecided if a premise fails, if a statement about law or
    premises could not decide or raised, if an obligation that is due was not met, or if it is another one where an
    option is turned on that is off by default, which may be the purpose of the option. It holds only if neither is so
    and a statement that decides law or order passed. Expected failures excuse faults and keep known violations from
    failing a run; they make no law hold.

    Args:
        sampler: name of the row.
        results: of it.
        plan: what was to be run; None for a file that does not say, whose law is then decided by what is in it.
        law_only: major faults of conduct do not count for the word either.
    """
    foreign = ":" in sampler or (plan is not None and plan.foreign)
    results, untried = _at_known_options(foreign, results)
    results, turned_on = _turned_on(results, plan.off if plan else ())
    of = lambda kinds, about: [j for j in results if j.kind in kinds and j.result.decides in about]
    violated = of(("fail", "unexpected pass"), ABOUT_LAW)
    known = of(("known",), ABOUT_LAW)
    met = _met(results)
    ran = len(results) + len(untried) + len(turned_on)
    part = plan is not None and (bool(plan.part) or ran < plan.cases)
    missing = () if part or plan is None else _missing(results, plan)
    sampled = not missing and any(j.kind == "pass" and j.result.statement in SAMPLED for j in results)
    stuck = (*_stuck(results, sampled), *_other_laws(turned_on))
    faults = _distinct(
        Fault(j.result.statement, j.result.severity or MAJOR, j.result.reason)
        for j in of(("fail", "unexpected pass"), ("conduct",))
    )
    law: Law = "holds"
    if violated or known:
        law = "violated"
    elif stuck or missing:
        law = "undecided"
    elif part or not any(j.result.decides in ABOUT_LAW for j in results):
        law = "not examined"
    elif not of(("pass",), ("law", "order")):
        law, missing = "undecided", ("no statement that decides the law or its order passed",)
    words: tuple[tuple[Word, bool], ...] = (
        ("fail", bool(violated)),
        ("error", any(j.kind == "error" for j in results)),
        ("inconclusive", law == "undecided" or (law == "not examined" and not part)),
        ("fault", any(fault.severity == MAJOR for fault in faults) and not law_only),
        ("known", bool(known)),
        ("part", part),
    )
    word: Word = PASS
    for name, true in reversed(words):
        word = name if true else word
    return Conclusion(
        sampler,
        word,
        law,
        plan.order if plan and law == "holds" else None,
        tuple(dict.fromkeys((j.result.statement, j.result.equation) for j in violated)),
        tuple(dict.fromkeys(j.result.statement for j in known)),
        (*stuck, *missing),
        met,
        faults,
        tuple(dict.fromkeys(j.result.statement for j in of(("known",), ("conduct",)))),
        (*_not_examined(results, plan), *_values_not_examined(untried)),
        _smallest(results),
        tuple(dict.fromkeys(name for j in of(("pass",), ("law", "order")) for name in j.result.detail.get(SHOWN, ()))),
        _disagreements(results),
        *_diagnosis(results),
        _bias(results),
        plan.left_out if plan else (),
    )


def _at_known_options(foreign: bool, results: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """The results, and apart from them what could not be decided at option values that the suite has made up.

    A sampler that no registry knows may not work at twice the value of an option; that is no fault of it.
    """
    made_up = foreign and any(not j.result.options for j in results)
    lost = lambda j: made_up and j.result.options and j.kind in ("inconclusive", "error", "out-of-reach")
    return [j for j in results if not lost(j)], [j for j in results if lost(j)]


def _turned_on(results: Sequence[Judged], off: Sequence[str]) -> tuple[list[Judged], list[Judged]]:
    """The results, and apart from them violations where an option is turned on that is off by default."""
    about = (*ABOUT_LAW, "premise")
    other = lambda j: j.kind == "fail" and j.result.decides in about and not set(off).isdisjoint(j.result.options)
    return [j for j in results if not other(j)], [j for j in results if other(j)]


def _other_laws(turned_on: Sequence[Judged]) -> tuple[str, ...]:
    """Violations with options turned on, in words."""
    texts = (
        f"{j.result.statement} with {', '.join(f'{k}={v!r}' for k, v in j.result.options.items())}, off by default: "
        f"{j.result.reason}; claim the law that it then has, if that is the purpose"
        for j in turned_on
    )
    return tuple(dict.fromkeys(texts))


def _values_not_examined(untried: Sequence[Judged]) -> tuple[str, ...]:
    """The option values at which something could not be decided, each with the first reason."""
    found: dict[str, str] = {}
    for j in untried:
        name = ", ".join(f"{k}={v!r}" for k, v in j.result.options.items())
        found.setdefault(name, f"{name} ({j.result.statement}: {j.result.reason})")
    return tuple(found.values())


def _stuck(results: Sequence[Judged], sampled: bool) -> tuple[str, ...]:
    """Premises that fail, and statements about law and premises that could not decide or raised.

    What could not decide is left alone if runs have decided instead.
    """
    found: dict[str, None] = {}
    for j in results:
        r = j.result
        failed = r.decides == "premise" and j.kind in ("fail", "known")
        kinds = ("error",) if sampled else ("inconclusive", "error")
        if failed or (r.decides in (*ABOUT_LAW, "premise") and j.kind in kinds):
            found[f"{r.statement}: {r.reason}"] = None
    return tuple(found)


def unmet(results: Sequence[Judged], plan: Plan) -> tuple[str, ...]:
    """Names of the obligations that are due and were not met."""
    met = _met(results)
    return tuple(name for name in plan.due if name not in met)


def _met(results: Sequence[Judged]) -> tuple[str, ...]:
    """Names of the obligations that were met at the options of the sampler itself, not at others of a variant."""
    own = [j for j in results if not j.result.options] or results
    return tuple(dict.fromkeys(name for j in own if j.kind == "pass" for name in j.result.meets))


def _missing(results: Sequence[Judged], plan: Plan) -> tuple[str, ...]:
    """The obligations that were not met, in words."""
    return tuple(f"not shown for {obligation(name).text}{_why(name, results)}" for name in unmet(results, plan))


def _why(name: str, results: Sequence[Judged]) -> str:
    """The reason for which a statement that would have met an obligation does not reach it."""
    reasons = [j.result for j in results if j.kind == "out-of-reach" and name in j.result.detail.get("would meet", ())]
    return f" ({reasons[0].statement}: {reasons[0].reason})" if reasons else ""


def _not_examined(results: Sequence[Judged], plan: Plan | None) -> tuple[str, ...]:
    found: dict[str, None] = dict.fromkeys(plan.notes if plan else ())
    for j in results:
        detail = j.result.detail
        for name in detail.get("not entered", ()):
            found[f"the other side of {name}"] = None
        if "not examined" in detail:
            found[str(detail["not examined"])] = None
    return tuple(found)


def _disagreements(results: Sequence[Judged]) -> tuple[str, ...]:
    failed = [j.result for j in results if j.kind in ("fail", "known") and CONTRADICTS in j.result.detail]
    return tuple(f"{r.statement} on {r.target} contradicts {r.detail[CONTRADICTS]}" for r in failed)


ROOTS = ("closed_state", "fresh_draws")
"""Premises in the order of their diagnosis: where one fails, whatever else fails is its consequence."""


def _diagnosis(results: Sequence[Judged]) -> tuple[str, str]:
    """The reason of a root that fails, else the diagnosis of most failures, else the reason of another premise.

    Beside it are the polynomials that it was read from, if it was; such a one comes before those fitted to numbers.
    """
    failed = [j.result for j in results if j.kind in ("fail", "known") and j.result.decides != "conduct"]
    for name in ROOTS:
        reasons = [r.reason for r in failed if r.statement == name]
        if reasons:
            return reasons[0], ""
    found = [r.detail["diagnosis"] for r in failed if "diagnosis" in r.detail]
    exact = [d for d in found if "polynomial" in d]
    pairs = [(d["text"], d.get("polynomial", "")) for d in exact or found]
    pairs = pairs or [(r.reason, "") for r in failed if r.tier == "contract"]
    return max(pairs, key=pairs.count) if pairs else ("", "")


def _bias(results: Sequence[Judged]) -> str:
    """The largest error of a variance at the usual step size, in words."""
    found = [j.result.detail[USUAL] for j in results if j.kind == "pass" and USUAL in j.result.detail]
    size = lambda usual: math.inf if usual["error"] is None else abs(usual["error"])  # None: too large to have a number
    return max(found, key=size)["text"] if found else ""


def _smallest(results: Sequence[Judged]) -> dict[str, tuple[float, str]]:
    """The bluntest pass of each check: any larger effect would have been seen by all of them."""
    found: dict[str, tuple[float, str]] = {}
    for j in results:
        r = j.result
        if j.kind != "pass" or r.decides not in ("law", "order") or r.detectable is None or not r.unit:
            continue
        if SHOWN in r.detail:  # a proof sees every violation
            continue
        if r.check not in found or r.detectable > found[r.check][0]:
            found[r.check] = (r.detectable, r.unit)
    return found


def _distinct(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """One fault per statement, the severest."""
    found: dict[str, Fault] = {}
    for fault in faults:
        if fault.statement not in found or fault.severity == MAJOR:
            found[fault.statement] = fault
    return tuple(found.values())
