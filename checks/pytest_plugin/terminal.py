"""Estimate and table of verdicts that a run of the checks prints of all its samplers."""

from collections.abc import Iterable, Sequence

from sgmcmc_verification.checks.core.result import VERDICTS, Result
from sgmcmc_verification.checks.runner.check_sets import added_since, newest
from sgmcmc_verification.checks.runner.plan import Plan
from sgmcmc_verification.checks.runner.text import MINOR_FAULT, Outcome


def header(plan: Plan, workers: int) -> list[str]:
    """The estimate that is printed before anything runs."""
    subjects = len({case.subject.name for case in plan.cases})
    seconds = plan.estimate / max(1, min(workers, len(plan.records) or 1))
    lines = [
        f"verification: {len(plan.checks)} items, {len(plan.records)} samplers ({subjects} with their options), "
        f"tiers {', '.join(plan.tiers)}, check set {plan.check_set.name}"
        f"{f', shard {plan.shard}' if plan.shard else ''}; about {_duration(seconds)}"
    ]
    if newer := added_since(plan.check_set):
        lines.append(f"check set {newest().name} would add: {', '.join(newer)}")
    if plan.expected_failures:
        rows = {(case.subject.name, case.subject.row.name) for case in plan.cases}
        mine = sum(any(entry.matches_sampler(*row) for row in rows) for entry in plan.expected_failures)
        lines.append(f"expected failures: {len(plan.expected_failures)} entries, {mine} about the samplers of this run")
    return lines


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def table(plan: Plan, outcomes: Sequence[Outcome]) -> list[str]:
    """Counts of every verdict, a line per sampler."""
    kinds = [*VERDICTS, *(k for k in ("known", "unexpected pass", MINOR_FAULT) if any(o.label == k for o in outcomes))]
    rows = [("sampler", *kinds, "seconds")]
    for name in plan.records:
        mine = [o for o in outcomes if o.row == name]
        counts = [str(sum(o.label == kind for o in mine)) for kind in kinds]
        rows.append((name, *counts, f"{sum(o.result.seconds or 0.0 for o in mine):.1f}"))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [
        "  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]) for r in rows
    ]


def worst(results: Iterable[Result]) -> Result:
    """The result that stands for an item of pytest: the first of the worst verdict."""
    order = ("fail", "error", "inconclusive", "out-of-reach", "pass", "not-applicable")
    return min(results, key=lambda r: order.index(r.verdict))
