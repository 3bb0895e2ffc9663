"""From numbers to a verdict, in one place."""

import math
from typing import Any

from checks.core.candidate import Subject
from checks.core.check import Check
from checks.core.result import Result, Verdict
from targets.target import Target


def decide(
    check: Check,
    subject: Subject,
    target: Target,
    *,
    effect: float,
    allowance: float,
    allowance_source: str,
    reason: str,
    statistic: str,
    unit: str,
    detectable: float,
    promised: float,
    step_size: float | None = None,
    detail: dict[str, Any] | None = None,
    gradients: int | None = None,
) -> Result:
    """Result of a noise-free check: fail if the effect exceeds its allowance, inconclusive if the check is too blunt.

    Args:
        effect: the measured |effect|; a value that is not finite fails.
        allowance: what theory and round-off allow.
        detectable: the smallest effect that this run would have caught (allowance plus numerical error).
        promised: the check promises to catch effects of this size; a blunter run is inconclusive, not a pass.
        reason: one sentence on what was found, used for every verdict.
    """
    verdict: Verdict
    if not math.isfinite(effect):
        verdict, reason = "fail", f"the effect is not finite; {reason}"
    elif effect > allowance:
        verdict = "fail"
    elif not detectable <= promised:
        verdict = "inconclusive"
        reason = f"only effects above {detectable:.2g} could be seen, {promised:.2g} was promised; {reason}"
    else:
        verdict = "pass"
    return Result(
        check=check.name,
        tier=check.tier,
        equation=check.equation,
        sampler=subject.name,
        verdict=verdict,
        reason=reason,
        target=target.name,
        step_size=step_size,
        options=dict(subject.options),
        statistic=statistic,
        effect=effect,
        unit=unit,
        allowance=allowance,
        allowance_source=allowance_source,
        power=1.0,
        detectable=detectable,
        gradients=gradients,
        detail=detail or {},
    )


def absent(check: Check, subject: Subject, target: Target, reason: str) -> Result:
    """Failure of a check whose noise of the gradient has no effect; `reason` says which noise and what of it."""
    return decide(
        check, subject, target,
        effect=1.0, allowance=0.0, allowance_source="noise of the gradient has to change the law",
        reason=reason, statistic="gradient noise absent", unit="yes or no", detectable=0.0, promised=1.0,
        step_size=subject.step_size(target),
    )  # fmt: skip
