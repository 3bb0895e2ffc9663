"""Outcome of a statistical test, and of several of them together."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import special

from sgmcmc_verification.targets.numerics.arrays import ArrayLike


@dataclass(frozen=True)
class Outcome:
    """Result of one test of the null hypothesis |true effect| <= allowance.

    Attributes:
        name: what was tested.
        effect: the measured effect, >= 0, in `unit`.
        unit: "relative", "KS distance", ...
        standard_error: of `effect`, in `unit`; None where the tail is not that of a normal variable.
        allowance: the largest true effect that is no error, in `unit`.
        log_p: natural logarithm of the p-value, the supremum over the null hypothesis. In logarithms because the levels
            that matter are near 1e-10 and the p-values of a wrong sampler underflow.
        n: sample size.
        threshold: level alpha -> the smallest effect that is rejected at this level; inf where none is.
        detectable: (alpha, power) -> the smallest true effect (beyond 0, so at least the allowance) that a test of this
            size rejects at level alpha with at least this probability.
        measured: the estimate whose distance from `expected` the effect is, where there is one number.
        expected: the exact value.
    """

    name: str
    effect: float
    unit: str
    standard_error: float | None
    allowance: float
    log_p: float
    n: int
    threshold: Callable[[float], float]
    detectable: Callable[[float, float], float]
    measured: float | None = None
    expected: float | None = None

    @property
    def p(self) -> float:
        """The p-value, for printing; 0 where it underflows."""
        return math.exp(self.log_p)

    def rejects(self, alpha: float) -> bool:
        """True if the null hypothesis is rejected at level alpha."""
        return bool(self.log_p <= math.log(alpha))


def bonferroni(name: str, outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome with the smallest p-value, as a test of all null hypotheses at once.

        p = min(1, m min_j p_j),  m = len(outcomes)

    valid whatever the dependence (union bound). What it detects is the largest of what its members detect at alpha/m.

    Raises:
        ValueError: no outcomes, or outcomes in different units.
    """
    if not outcomes:
        raise ValueError("outcomes is empty: nothing was tested")
    if len({o.unit for o in outcomes}) > 1:
        raise ValueError(
            f"outcomes are in different units ({', '.join(sorted({o.unit for o in outcomes}))}): bring to one"
        )
    m = len(outcomes)
    worst = min(outcomes, key=lambda o: o.log_p)
    return replace(
        worst,
        name=f"{name}: {worst.name}" if m > 1 else name,
        log_p=min(0.0, worst.log_p + math.log(m)),
        threshold=lambda alpha: worst.threshold(alpha / m),
        detectable=lambda alpha, power: max(o.detectable(alpha / m, power) for o in outcomes),
    )


def normal_quantile(log_tail: float) -> float:
    """q with log(1 - Phi(q)) = log_tail."""
    return float(-special.ndtri_exp(log_tail))


def checked_sample(
    name: str, values: ArrayLike, ndim: int | tuple[int, ...], least: int = 2
) -> Float[np.ndarray, "n ..."]:
    """`values` as a float64 array.

    Raises:
        ValueError: a wrong number of dimensions, fewer than `least` rows, or numbers that are not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed:
        raise ValueError(
            f"{name} has shape {array.shape}: give {' or '.join(map(str, allowed))} dimension(s), samples first"
        )
    if array.shape[0] < least:
        raise ValueError(f"{name} has {array.shape[0]} samples: give at least {least}")
    if not np.all(np.isfinite(array)):
        bad = array.size - np.count_nonzero(np.isfinite(array))
        raise ValueError(f"{name} has {bad} values that are not finite: a sampler that returns them has failed already")
    return array


def checked_allowance(allowance: float) -> float:
    """`allowance` as a float.

    Raises:
        ValueError: it is negative or not finite.
    """
    if not 0 <= allowance < math.inf:
        raise ValueError(f"allowance is {allowance}: give a finite number that is not negative")
    return float(allowance)
