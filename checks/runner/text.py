"""The text about a sampler: a conclusion in a few lines, and what is wrong in full."""

from collections.abc import Sequence
from dataclasses import dataclass

from sgmcmc_verification.checks.core.conclusion import MINOR, PASS, ROOTS, WORDS, Conclusion, Judged, conclude
from sgmcmc_verification.checks.core.conclusion import Plan as Record
from sgmcmc_verification.checks.core.obligations import obligation
from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.runner.check_sets import added_since, newest
from sgmcmc_verification.checks.runner.expected_failures import ExpectedFailure
from sgmcmc_verification.checks.runner.plan import Plan

WIDTH = 118
MINOR_FAULT = "minor fault"
MOST_FAILING, MOST_LINES = 40, 12
"""Lines that a failing and a passing sampler print at most."""


@dataclass(frozen=True)
class Outcome:
    """A result, the row it belongs to, and the known failure that it matches, if any."""

    row: str
    result: Result
    expected: ExpectedFailure | None = None

    @property
    def kind(self) -> str:
        """The verdict, `known`, or `unexpected pass`."""
        if self.expected is None or self.result.verdict in ("not-applicable", "out-of-reach"):
            return self.result.verdict
        return "unexpected pass" if self.result.verdict == "pass" else "known"

    @property
    def judged(self) -> Judged:
        """The result with its kind, as a conclusion takes it."""
        return Judged(self.result, self.kind)

    @property
    def ok(self) -> bool:
        """True if it does not fail the run by itself."""
        return self.kind in ("pass", "not-applicable", "out-of-reach", "known") or self.label == MINOR_FAULT

    @property
    def label(self) -> str:
        """The kind, as it is counted and shown: a minor fault of conduct is none of the failures."""
        return MINOR_FAULT if self.kind == "fail" and self.result.severity == MINOR else self.kind


def conclusions(plan: Plan, outcomes: Sequence[Outcome]) -> list[Conclusion]:
    """One conclusion per sampler of the plan."""
    return [
        conclude(row, [o.judged for o in outcomes if o.row == row], record, plan.law_only)
        for row, record in plan.records.items()
    ]


def report(conclusion: Conclusion, plan: Plan, outcomes: Sequence[Outcome]) -> list[str]:
    """All that is printed of one sampler: at most 12 lines if it passes, 40 if not."""
    meaning = WORDS[conclusion.word]
    if conclusion.word == PASS:
        meaning = f"the law holds, with every obligation met, and {_manners(conclusion)}"
    lines = [f"{conclusion.word.upper()}  {conclusion.sampler}  ({meaning})"]
    record = plan.records[conclusion.sampler]
    if newer := added_since(plan.check_set):
        lines += _wrapped("check set", f"{plan.check_set.name}; {newest().name} would add {_few(newer)}")[:2]
    lines += _wrapped("convention", record.reading)[:6] if record.reading else []
    if conclusion.diagnosis:
        lines += _wrapped("diagnosis", conclusion.diagnosis)[:3]
    if conclusion.polynomial:
        lines += [line[:WIDTH] for line in _wrapped("read", conclusion.polynomial)[:2]]
    lines += _law(conclusion, record)
    lines += [f"              {name}: {equation}"[:WIDTH] for name, equation in conclusion.violated[:8]]
    lines += _more(len(conclusion.violated) - 8, "violated statements")
    # what is violated is decided: what else could not be is of no interest then
    shown = () if conclusion.law == "violated" else conclusion.open
    for text in shown[:5]:
        lines += _wrapped("undecided", text)[:3]
    lines += _more(len(shown) - 5, "reasons")
    if conclusion.known:
        lines += _wrapped("known", ", ".join(conclusion.known))
    lines += _conduct(conclusion)
    if conclusion.left_out:
        lines += _wrapped("left out", "; ".join(conclusion.left_out))[:3]
    lines += _limits(conclusion)
    unclaimed = plan.claims.get(conclusion.sampler, ())
    if unclaimed and conclusion.law == "undecided":
        lines += _wrapped("not claimed", ", ".join(unclaimed))[:2]
    if conclusion.good:
        return lines[:MOST_LINES]
    return lines + _findings(outcomes, MOST_FAILING - len(lines))


def _limits(conclusion: Conclusion) -> list[str]:
    """Sizes that would have been seen, what was not examined, and what a right law errs by."""
    lines = []
    if conclusion.smallest and conclusion.good:
        seen = (f"{check} {value:.1g} {unit}" for check, (value, unit) in conclusion.smallest.items())
        lines += _wrapped("would see", "; ".join(seen))[:3]
    if conclusion.not_examined:
        shown = "; ".join(conclusion.not_examined[:4])
        more = len(conclusion.not_examined) - 4
        lines += _wrapped("not examined", shown + (f"; and {more} more" if more > 0 else ""))[:3]
    if conclusion.bias and conclusion.good:
        lines += _wrapped("bias", conclusion.bias)[:2]
    return lines


def _few(names: Sequence[str]) -> str:
    """The first five of some names, and the number of the others."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _manners(conclusion: Conclusion) -> str:
    """The conduct of a sampler that passes."""
    if not conclusion.faults:
        return "the conduct is clean"
    minor = all(fault.severity == MINOR for fault in conclusion.faults)
    return "the conduct has minor faults" if minor else "faults of conduct do not count here"


def _law(conclusion: Conclusion, record: Record) -> list[str]:
    law = conclusion.law_in_words(record.temperature)
    if conclusion.law == "holds" and conclusion.met:
        law += ": " + ", ".join(obligation(name).text for name in conclusion.met)
    if conclusion.law == "not examined" and record.part:
        law += f" as a whole ({record.part})"
    lines = _wrapped("law", law)
    if conclusion.law == "holds" and conclusion.proved:
        lines += _wrapped("proved", f"for every smooth potential: {', '.join(conclusion.proved)}")[:2]
    if conclusion.disagreements:
        lines += _wrapped("SUITE ERROR", f"{'; '.join(conclusion.disagreements)}: please report this")[:3]
    return lines


def _conduct(conclusion: Conclusion) -> list[str]:
    if not conclusion.faults:
        return [] if conclusion.word == "error" else ["  conduct     clean"]
    lines = []
    for fault in conclusion.faults[:4]:
        lines += _wrapped("conduct", f"{fault.severity}: {fault.statement}: {fault.reason}")[:2]
    return lines + _more(len(conclusion.faults) - 4, "faults")


def _more(count: int, what: str) -> list[str]:
    return [f"              and {count} more {what}"] if count > 0 else []


def _wrapped(label: str, text: str) -> list[str]:
    """Lines of a text behind its label."""
    words, lines, line = text.split(), [], f"  {label:<12}"
    for word in words:
        if len(line) + len(word) + 1 > WIDTH and line.strip():
            lines.append(line)
            line = " " * 14 + word
        else:
            line += ("" if line.endswith(" ") and len(line) == 14 else " ") + word
    return [*lines, line]


def _findings(outcomes: Sequence[Outcome], room: int) -> list[str]:
    """The first finding in full, then others as long as there is room; the same finding elsewhere is a line."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if not outcome.ok:
            r = outcome.result
            groups.setdefault((r.verdict, r.reason if r.verdict == "error" else r.statement), []).append(outcome)
    order = {"fail": 0, "unexpected pass": 0, "error": 1, "inconclusive": 2}
    # what decides the law comes before faults of conduct
    rank = lambda one: (order[one.kind], one.result.decides == "conduct", one.result.statement not in ROOTS)
    ranked = sorted(groups.values(), key=lambda group: rank(group[0]))
    lines: list[str] = []
    for number, group in enumerate(ranked):
        text = ["", *block(group[0].result, group[0].expected).split("\n")]
        others = sorted({f"{o.result.statement} on {o.result.target}" for o in group[1:]} - {""})
        if others:
            text.append(f"  the same    {', '.join(others)}"[:WIDTH])
        if number and len(lines) + len(text) > room - 2:
            left = [f"{g[0].result.statement} on {g[0].result.target}" for g in ranked[number:]]
            return [*lines, "", *_wrapped("and more", ", ".join(left))[: max(1, room - len(lines) - 1)]]
        lines += text
    return lines[:room]


def block(result: Result, expected: ExpectedFailure | None = None) -> str:
    """Everything about one result that is not a pass."""
    title = f"{result.verdict.upper()}  {result.sampler}  {result.check}/{result.statement}"
    title += f"  {result.target}" if result.target else ""
    if expected is not None:
        title = ("UNEXPECTED PASS  " if result.verdict == "pass" else "KNOWN  ") + title
    lines = [title]
    if expected is not None:
        lines.append(f"  known as    {expected.reason} ({expected.issue})")
        if result.verdict == "pass":
            lines.append("  remedy      remove the entry from the expected failures")
    lines += [f"  equation    {result.equation}", f"  reason      {result.reason}"]
    if result.effect is not None:
        unit = f" {result.unit}" if result.unit else ""
        what = f"{result.statistic}: " if result.statistic else ""
        lines.append(f"  effect      {what}{result.effect:.6g}{unit}")
    if result.allowance is not None:
        source = f", from {result.allowance_source}" if result.allowance_source else ""
        lines.append(f"  tolerance   {result.allowance:.6g}{source}")
    if result.detectable is not None:
        power = "deterministic" if result.alpha is None else f"with probability {result.power:g}"
        lines.append(f"  minimum detectable effect {result.detectable:.3g} ({power})")
    where = [f"step size {result.step_size:.6g}"] if result.step_size is not None else []
    where += [f"{k}={v!r}" for k, v in result.options.items()]
    where += [f"dtype {result.dtype}"] if result.dtype else []
    where += [f"seed {result.seed}"] if result.seed is not None else []
    if where:
        lines.append(f"  at          {', '.join(where)}")
    if result.reproduction:
        shell, *python = result.reproduction.splitlines()
        lines += [f"  reproduce   {shell}", *(f"              {line}" for line in python)]
    return "\n".join(lines)
