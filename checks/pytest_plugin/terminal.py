"""Printed output of a run: the estimate, a block per result that is not a pass, a table, the verdicts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from checks.core.check import UNCLAIMED
from checks.core.result import VERDICTS, Result
from checks.pytest_plugin.known_failures import Deviation
from checks.pytest_plugin.plan import LAW_TIERS, Plan
from checks.registry import settles_the_law
from samplers.entry import STATISTICAL_TIERS, WORKLOAD


@dataclass(frozen=True)
class SamplerVerdict:
    """The overall verdict of one sampler, all its variants together."""

    sampler: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """A result, the row it belongs to, and the known failure that it matches, if any."""

    row: str
    result: Result
    deviation: Deviation | None = None

    @property
    def kind(self) -> str:
        """The verdict, `known deviation`, or `unexpected pass`."""
        if self.deviation is None or self.result.verdict == "not-applicable":
            return self.result.verdict
        return "unexpected pass" if self.result.verdict == "pass" else "known deviation"

    @property
    def ok(self) -> bool:
        """True if it does not fail the run."""
        return self.kind in ("pass", "not-applicable", "known deviation")


def header(plan: Plan, workers: int) -> list[str]:
    """The estimate that is printed before anything runs."""
    run = [c for c in plan.cases if c.unsupported is None]
    subjects = len({c.subject.name for c in run})
    seconds = plan.estimate / max(1, min(workers, subjects or 1))
    return [
        f"verification: {len(run)} checks of {len(plan.rows)} samplers ({subjects} with their options), "
        f"tiers {', '.join(plan.tiers)}; about {_duration(seconds)}"
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def overall(plan: Plan, outcomes: Sequence[Outcome]) -> list[SamplerVerdict]:
    """One verdict per sampler of the plan."""
    rows = ((row, [o for o in outcomes if o.row == row]) for row in plan.rows)
    return [sampler_verdict(row, plan.tiers, own, plan.smoothed) for row, own in rows]


def sampler_verdict(
    row: str, tiers: Sequence[str], mine: Sequence[Outcome], smoothed: Callable[[str], bool]
) -> SamplerVerdict:
    """The overall verdict of one sampler.

    A sampler passes only if nothing failed and at least one check of the law passed of each kind, deterministic and
    statistical, of which a tier was selected: a run in which no law check applied is inconclusive, not green. Particles
    with an estimate of their own density draw no noise, and have their law in a limit only, which the deterministic
    checks take: where one of those passed, nothing statistical is left to ask of them.

    Args:
        row: name of the sampler.
        tiers: the tiers that were selected.
        mine: its results.
        smoothed: row -> True for particles with an estimate of their own density.
    """
    bad = {kind: [o for o in mine if o.kind == kind] for kind in ("error", "fail", "unexpected pass", "inconclusive")}
    for kind, verdict in (("fail", "fail"), ("error", "error"), ("unexpected pass", "fail")):
        if bad[kind]:
            return SamplerVerdict(row, verdict, f"{len(bad[kind])} x {kind}: {_names(bad[kind])}")
    if bad["inconclusive"]:
        return SamplerVerdict(row, "inconclusive", f"undecided: {_names(bad['inconclusive'])}")
    known = [o for o in mine if o.kind == "known deviation"]
    selected, notes = [], []
    for kind, own in LAW_TIERS.items():
        chosen = [t for t in _tiers_of(tiers, mine) if t in own]
        selected += chosen
        decides = [o for o in mine if o.result.tier in chosen and settles_the_law(o.result.check)]
        if chosen and not any(o.kind in ("pass", "known deviation") for o in decides):
            if kind == "statistical" and len(selected) > len(chosen) and smoothed(row):
                notes.append("the law by deterministic checks: its flow has no noise")
                continue
            return SamplerVerdict(row, "inconclusive", f"no {kind} check of the law passed (tiers {', '.join(chosen)})")
    if not any(o.kind in ("pass", "known deviation") for o in mine):
        return SamplerVerdict(row, "inconclusive", "no check was run")
    if known:
        notes.append(f"{len(known)} known deviations: {_names(known)}")
    if not selected:
        notes.append(f"only {', '.join(tiers)}; the law was not checked")
    return SamplerVerdict(row, "pass", "; ".join(notes))


def _tiers_of(tiers: Sequence[str], mine: Sequence[Outcome]) -> tuple[str, ...]:
    """The tiers that a row can have: a kernel of the tier `workload` that one alone, a sampler all others."""
    kernel = bool(mine) and all(o.result.tier == WORKLOAD for o in mine)
    return tuple(t for t in tiers if (t == WORKLOAD) == kernel)


def _names(outcomes: Iterable[Outcome]) -> str:
    return ", ".join(dict.fromkeys(o.result.check for o in outcomes))


def block(result: Result, deviation: Deviation | None = None) -> str:
    """Everything about one result that is not a pass."""
    title = f"{result.verdict.upper()}  {result.sampler}  {result.check}" + (
        f"  {result.target}" if result.target else ""
    )
    if deviation is not None:
        title = ("UNEXPECTED PASS  " if result.verdict == "pass" else "KNOWN DEVIATION  ") + title
    lines = [title]
    if deviation is not None:
        lines.append(f"  known as    {deviation.reason} ({deviation.issue})")
        if result.verdict == "pass":
            lines.append("  remedy      remove the entry from the deviations file")
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


def blocks(outcomes: Iterable[Outcome]) -> list[str]:
    """A block a result that is not a pass; equal findings share one, with the names of the other checks."""
    groups: dict[tuple, list[Outcome]] = {}
    for outcome in outcomes:
        r = outcome.result
        if outcome.kind in ("pass", "not-applicable"):
            continue
        same = r.verdict == "error"  # the same exception in every check is one finding
        key = (r.sampler, r.target, r.verdict, r.reason) if same else (id(outcome),)
        groups.setdefault(key, []).append(outcome)
    texts = []
    for group in groups.values():
        text = block(group[0].result, group[0].deviation)
        if len(group) > 1:
            text += "\n  the same    in " + ", ".join(dict.fromkeys(o.result.check for o in group[1:]))
        texts.append(text)
    return texts


def reasons(outcomes: Iterable[Outcome]) -> list[str]:
    """The checks that do not apply, counted by sampler, check and reason; claims that are not made share a line."""
    counts: dict[tuple[str, str, str], int] = {}
    unclaimed: dict[str, dict[str, None]] = {}
    for o in outcomes:
        if o.kind == "not-applicable" and o.result.reason.startswith(UNCLAIMED):
            unclaimed.setdefault(o.row, {}).update(dict.fromkeys(o.result.reason.removeprefix(UNCLAIMED).split(", ")))
        elif o.kind == "not-applicable":
            key = (o.row, o.result.check, o.result.reason)
            counts[key] = counts.get(key, 0) + 1
    merged: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for (row, check, reason), n in counts.items():
        merged.setdefault((row, reason), []).append((check, n))
    lines = [
        f"{sum(n for _, n in found):4d}  {row}: {', '.join(c for c, _ in found)}: {reason}"
        for (row, reason), found in merged.items()
    ]
    return lines + [f"      {row}: claims that are not made: {', '.join(kinds)}" for row, kinds in unclaimed.items()]


def detectables(outcomes: Iterable[Outcome]) -> list[str]:
    """Minimum detectable effects of the passing checks that sample: a line per check, the worst over samplers."""
    # `geometry` has checks without an error rate as well: they sample nothing
    results = [o.result for o in outcomes if o.result.tier in STATISTICAL_TIERS and o.result.alpha is not None]
    passed = [r for r in results if r.verdict == "pass"]
    worst: dict[str, Result] = {}
    for r in sorted(passed, key=lambda r: r.detectable or 0.0):
        worst[r.check] = r
    return [
        f"{r.check}: {r.detectable:.2g} {r.unit}, with probability {r.power:g} at level {r.alpha:.1g} "
        f"({r.sampler} on {r.target}, {r.n:,} chains)"
        for r in worst.values()
    ]


def table(plan: Plan, outcomes: Sequence[Outcome]) -> list[str]:
    """Counts of every verdict, a line per sampler."""
    kinds = [*VERDICTS, *(k for k in ("known deviation", "unexpected pass") if any(o.kind == k for o in outcomes))]
    rows = [("sampler", *kinds, "seconds")]
    for name in plan.rows:
        mine = [o for o in outcomes if o.row == name]
        counts = [str(sum(o.kind == kind for o in mine)) for kind in kinds]
        rows.append((name, *counts, f"{sum(o.result.seconds or 0.0 for o in mine):.1f}"))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return [
        "  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]) for r in rows
    ]
