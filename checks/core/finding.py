"""Finding of a check, in numbers, and the one rule that makes a verdict of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgmcmc_verification.checks.core.obligations import Obligation
from sgmcmc_verification.checks.core.result import Verdict

EPS = float(np.finfo(float).eps)
"""Unit in the last place of a double, 2.2e-16."""
SAFETY = 10.0
"""Factor between an estimate of a numerical error, from two resolutions, and what is tolerated."""

TWICE = -1.0
"""Stands for twice the tolerance: what is smaller may hide behind the error that the tolerance grants."""


@dataclass(frozen=True)
class Tolerance:
    """The largest effect that theory and round-off allow.

    Attributes:
        value: in the unit of the effect.
        source: what it is derived from.
    """

    value: float
    source: str

    @classmethod
    def roundoff(cls, operations: float, source: str, eps: float = EPS) -> "Tolerance":
        """`operations` units in the last place: how many, and of what, is the source."""
        return cls(float(operations) * eps, source)

    @classmethod
    def numerical(cls, error: float, source: str, roundoff: float = 0.0) -> "Tolerance":
        """`SAFETY` times an estimated error, and `roundoff` units in the last place."""
        return cls(float(SAFETY * error + roundoff * EPS), source)

    @classmethod
    def identity(cls, source: str = "an identity") -> "Tolerance":
        """Nothing: what is counted must be 0."""
        return cls(0.0, source)


@dataclass(frozen=True)
class Significance:
    """Result of a statistical test, as a part of a finding.

    Attributes:
        rejected: whether the null hypothesis is rejected at level `alpha`.
        p_value: adjusted for the number of outcomes.
        alpha: level of the case.
        power: with which the minimum detectable effect is seen.
        standard_error: of the effect, or None.
    """

    rejected: bool
    p_value: float
    alpha: float
    power: float
    standard_error: float | None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The measured size of a violation, beside what is tolerated and what could have been seen.

    The null hypothesis is |effect| <= tolerance. Names, equation, tier, seed and versions are not part of it: the
    runner knows them.

    Attributes:
        effect: the measured |effect|; a value that is not finite fails.
        tolerance: what theory and round-off allow.
        minimum_detectable_effect: the smallest effect that this run would have caught; default: twice the tolerance.
        required_sensitivity: the effect that the check promises to catch; a blunter run is inconclusive, not a pass.
        reason: one sentence on what was found, used for every verdict.
        statistic: name of what was measured.
        unit: of the effect.
        step_size: at which it was measured.
        measurements: numbers behind it, by name.
        samples: number of chains or points.
        gradients: number of evaluations of the gradient.
        dtype: if not that of the run.
        equation: what is violated, where that is narrower than the equation of the check.
        violated: of a check that decides otherwise than by the size of the effect (a proof); None for others.
        significance: of a statistical test; None for a deterministic one.
        meets: obligations that a pass meets beside those of its statement, where they depend on more than the target.
        minor: of a failure of conduct that is a matter of form, where the statement's failures as a rule are not.
    """

    effect: float
    tolerance: Tolerance
    minimum_detectable_effect: float = TWICE
    required_sensitivity: float
    reason: str
    statistic: str
    unit: str
    step_size: float | None = None
    measurements: Mapping[str, Any] = field(default_factory=dict)
    samples: int | None = None
    gradients: int | None = None
    dtype: str | None = None
    equation: str | None = None
    violated: bool | None = None
    significance: Significance | None = None
    meets: tuple[Obligation, ...] = ()
    minor: bool = False

    def __post_init__(self) -> None:
        if self.minimum_detectable_effect == TWICE:
            object.__setattr__(self, "minimum_detectable_effect", 2 * self.tolerance.value)

    @property
    def verdict(self) -> Verdict:
        """`fail` if the effect exceeds its tolerance, else `inconclusive` if the run was too blunt, else `pass`."""
        if self._rejected:
            return "fail"
        return "inconclusive" if self._blunt else "pass"

    @property
    def explanation(self) -> str:
        """The reason, with what stands in the way of a pass or a plain failure before it."""
        if self._rejected:
            finite = math.isfinite(self.effect) or self.significance is not None or self.violated is not None
            return self.reason if finite else f"the effect is not finite; {self.reason}"
        if self._blunt:
            seen, due = self.minimum_detectable_effect, self.required_sensitivity
            return f"only effects above {seen:.2g} could be seen, {due:.2g} was promised; {self.reason}"
        return self.reason

    @property
    def _rejected(self) -> bool:
        if self.violated is not None:
            return self.violated
        if self.significance is not None:
            return self.significance.rejected
        return not self.effect <= self.tolerance.value

    @property
    def _blunt(self) -> bool:
        return not self.minimum_detectable_effect <= self.required_sensitivity


def absent(step_size: float, reason: str) -> Finding:
    """Failure of a check whose gradient noise has no effect; `reason` says which noise and what of it."""
    return Finding(
        effect=1.0,
        tolerance=Tolerance(0.0, "noise of the gradient has to change the law"),
        minimum_detectable_effect=0.0,
        required_sensitivity=1.0,
        reason=reason,
        statistic="gradient noise absent",
        unit="yes or no",
        step_size=step_size,
    )
