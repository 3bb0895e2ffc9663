"""z tests of expectations, with the standard error from the sample."""

import math
from collections.abc import Sequence

import numpy as np
import scipy
from jaxtyping import Float
from scipy import special

from sgmcmc_verification.checks.statistics.outcome import Outcome, checked_allowance, checked_sample, normal_quantile
from sgmcmc_verification.targets.numerics.arrays import ArrayLike

FAR = 30.0
"""Beyond this z, where SciPy's tail underflows before long, that of Student's t is expanded in 1/z."""


def mean_test(
    values: ArrayLike,
    expected: float,
    *,
    name: str = "mean",
    allowance: float = 0.0,
    unit: str = "absolute",
    scale: float = 1.0,
    skewness: float | None = None,
) -> Outcome:
    """Test of |E f - mu| <= allowance * scale from i.i.d. values of f.

        T = (|mean f - mu| - allowance scale)_+ / (s / sqrt(n)),    p = 2 P(T)

    where P is the tail of `log_tail` on the side on which the mean lies. The two sides differ by the skewness, and each
    is given half of the level.

    Args:
        values: (n,), float64, f at i.i.d. points.
        expected: mu, exact.
        name: what was tested.
        allowance: largest |E f - mu| / scale that is no error.
        unit: of the effect, after the division by `scale`: "relative", "standard deviations", ...
        scale: the effect is |mean f - mu| / scale; mu itself for a relative effect.
        skewness: of f where it is known; by default that of the sample.

    Returns:
        The outcome; `detectable` is allowance + (q + z_power) s/sqrt(n), with q the larger of the two critical values,
        at the standard error of this sample. Round-off of the mean, 8 eps max(|f|, |mu|), is added to the allowance, so
        that a constant f is no error.

    Raises:
        ValueError: a sample of a wrong shape, or with values that are not finite; a negative allowance; a scale that is
            not positive.
    """
    values = checked_sample("values", values, 1)
    allowance = checked_allowance(allowance)
    if not 0 < scale < math.inf:
        raise ValueError(f"scale is {scale}: give a positive number")
    n = values.size
    shifted = values - expected
    shift = float(np.mean(shifted))
    centred = shifted - shift
    square = centred * centred
    variance = float(np.sum(square)) / (n - 1)
    gamma = _skewness(centred, square, variance) if skewness is None else float(skewness)
    roundoff = 8 * np.finfo(np.float64).eps * max(abs(expected), float(np.max(np.abs(values))))
    error = math.sqrt(variance / n) / scale
    effect, free = abs(shift) / scale, allowance + roundoff / scale
    signed = gamma if shift >= 0 else -gamma  # the skewness seen from the side of the mean

    def threshold(alpha: float, side: float = signed) -> float:
        return free + error * critical_value(alpha / 2, n, side) if error > 0 else free

    def detectable(alpha: float, power: float) -> float:
        worst = max(threshold(alpha, gamma), threshold(alpha, -gamma))
        return worst + error * normal_quantile(math.log1p(-power))

    if effect <= free:
        log_p = 0.0
    elif error == 0:
        log_p = -math.inf
    else:
        log_p = min(0.0, math.log(2) + log_tail((effect - free) / error, n, signed))
    return Outcome(
        name,
        effect,
        unit,
        error,
        allowance,
        log_p,
        n,
        threshold,
        detectable,
        measured=shift + float(expected),
        expected=float(expected),
    )


def mean_tests(
    values: ArrayLike,
    expected: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    allowance: ArrayLike = 0.0,
    unit: str = "absolute",
    scale: ArrayLike = 1.0,
) -> list[Outcome]:
    """`mean_test` of every column of `values`.

    Args:
        values: (n, k).
        expected: (k,) or a scalar, as `allowance` and `scale`.
        names: k names; by default "mean 0", "mean 1", ...

    Raises:
        ValueError: as `mean_test`, or lengths that do not agree.
    """
    values = checked_sample("values", values, 2)
    k = values.shape[1]
    names = [f"mean {j}" for j in range(k)] if names is None else list(names)
    if len(names) != k:
        raise ValueError(f"names has {len(names)} entries for {k} columns of values: give one for each")
    numbers = [np.broadcast_to(np.asarray(a, dtype=np.float64), (k,)) for a in (expected, allowance, scale)]
    return [
        mean_test(values[:, j], float(mu), name=names[j], allowance=float(a), unit=unit, scale=float(c))
        for j, (mu, a, c) in enumerate(zip(*numbers, strict=True))
    ]


def log_tail(z: float, n: int, skewness: float) -> float:
    """log P(T_n >= z) of Student's statistic of n i.i.d. values with this skewness, z >= 0.

        log P(T_n >= z) = log P(t_{n-1} >= z) - gamma (2 z^2 + 1) h(z)/(6 sqrt(n)) + O((1 + z^4)/n)
        h = phi/(1 - Phi)

    The leading term of the correction, -gamma z^3/(3 sqrt(n)), keeps the tail right where the normal one is off by a
    factor: with f = x^2 of a normal x (gamma = 2.8) and n = 1e6 by 1.3 at z = 6.5, with n = 1e4 by 13. The t law makes
    it exact for normal f. What is left out of log P has the leading term -kappa z^4/(12 n), kappa the excess kurtosis.
    If gamma is that of the sample, it grows with T by (kappa - 3 gamma^2/2) z/sqrt(n), and p is too small by the factor
    exp((kappa/4 - gamma^2/2) z^4/n): by a few per cent at z = 6.5 for kappa = 6, gamma = 0 and n = 1e5, while for
    gamma-distributed f (kappa = 3 gamma^2/2) p is on the safe side.

    The expansion is used up to z* = min(1/|gamma|, 1) sqrt(n)/2, half way to where its exponent turns or less. Beyond,
    on the side of the heavy tail of T (gamma z < 0), p stays at its value at z*: a sample that is too small for a
    level cannot reject at it; 1e-10 takes n > 300, and more with skewness. On the light side the correction stays at
    its value at z*.

    Source: jing2003selfnormalized (theorem 2.1: 1 - Phi is right as long as (1 + z)^3 E|f|^3/sqrt(n) is small);
    hall1992bootstrap, section 2.6 (the polynomial (2 z^2 + 1) gamma/6 of the Studentised mean).

    Args:
        z: the statistic, >= 0.
        n: sample size.
        skewness: gamma, positive if the heavy tail of f lies on the side of the mean that z measures.
    """
    largest = math.inf if skewness == 0 else math.sqrt(n) / 2 * min(1 / abs(skewness), 1.0)
    w = min(z, largest)
    if skewness < 0:
        z = w
    hazard = math.exp(-0.5 * w * w - 0.5 * math.log(2 * math.pi) - float(special.log_ndtr(-w)))
    correction = -skewness * (2 * w * w + 1) * hazard / (6 * math.sqrt(n))
    return min(0.0, _log_student(z, n - 1) + correction)


def critical_value(level: float, n: int, skewness: float) -> float:
    """z with log_tail(z) = log(level); inf where the sample is too small for the level."""
    goal = math.log(level)
    if log_tail(0.0, n, skewness) <= goal:
        return 0.0
    upper = 8.0
    while log_tail(upper, n, skewness) > goal:
        upper *= 2
        if upper > 1e6:
            return math.inf
    return scipy.optimize.root_scalar(lambda z: log_tail(z, n, skewness) - goal, bracket=(0.0, upper), xtol=1e-10).root


def _skewness(centred: Float[np.ndarray, " n"], square: Float[np.ndarray, " n"], variance: float) -> float:
    scale = variance**1.5
    return float(np.mean(square * centred)) / scale if scale > 0 else 0.0


def _log_student(z: float, nu: int) -> float:
    """log P(t_nu >= z)."""
    if z < FAR:
        return math.log(float(special.stdtr(nu, -z)))
    # With r = -f'/f = (nu + 1) z/(nu + z^2) of the density f, two integrations by parts give P = (f/r)/(1 - (1/r)') but
    # for a relative error of (1/r)''/r, which is below 2 (nu + z^2)/(nu z^4).
    rate = (nu + 1) * z / (nu + z * z)
    return float(scipy.stats.t.logpdf(z, nu)) - math.log(rate) - math.log1p(-(1 - nu / (z * z)) / (nu + 1))
