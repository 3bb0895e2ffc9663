"""Tests of a whole one-dimensional law: Kolmogorov-Smirnov with one and two samples, and Anderson-Darling."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy import special

from sgmcmc_verification.checks.statistics import weighted_chi_square
from sgmcmc_verification.checks.statistics.outcome import Outcome, checked_allowance, checked_sample
from sgmcmc_verification.targets.numerics.arrays import ArrayLike

TERMS = 150
"""Terms of the limit law of Anderson and Darling that are kept as chi-squares; the mean of the others is added."""


def ks_test(u: ArrayLike, *, name: str = "Kolmogorov-Smirnov", allowance: float = 0.0) -> Outcome:
    """Test of sup_x |G(x) - F(x)| <= a, where x_1, .., x_n ~ G are i.i.d. and u_i = F(x_i).

        D = sup_x |G_n(x) - F(x)|,    P(D >= a + t) <= P(sup |G_n - G| >= t) <= 2 exp(-2 n t^2)

    for every n, G and t >= 0. The p-value is a bound: the exact one approaches it in the far tail, so that nothing is
    lost there; in the bulk it is too large.

    Source: massart1990tight, corollary 1. Power: at the x of the largest |G - F| the error of G_n is that of a mean of
    n variables in [0, 1] (hoeffding1963probability, theorem 1), so that a distance of
    threshold + sqrt(log(1/(1 - power))/(2n)) is seen with the stated power, for every n and G.

    Args:
        u: (n,), the claimed distribution function at the samples, in [0, 1].
        name: what was tested.
        allowance: a, the largest KS distance that is no error.

    Raises:
        ValueError: a wrong shape, values outside of [0, 1] or not finite, a negative allowance.
    """
    u = np.sort(_unit_interval(u, 1))
    n, allowance = u.size, checked_allowance(allowance)
    grid = np.arange(n + 1) / n
    distance = float(max(np.max(grid[1:] - u), np.max(u - grid[:-1])))
    excess = max(0.0, distance - allowance)
    return Outcome(
        name,
        distance,
        "KS distance",
        None,
        allowance,
        min(0.0, math.log(2) - 2 * n * excess**2),
        n,
        lambda alpha: allowance + math.sqrt(math.log(2 / alpha) / (2 * n)),
        lambda alpha, power: (
            allowance + math.sqrt(math.log(2 / alpha) / (2 * n)) + math.sqrt(-math.log1p(-power) / (2 * n))
        ),
    )


def ks_tests(u: ArrayLike, *, names: Sequence[str] | None = None, allowance: float = 0.0) -> list[Outcome]:
    """`ks_test` of every column of u (n, k): marginals, or projections on k directions; combine with `bonferroni`.

    Raises:
        ValueError: as `ks_test`, or names that are not one for each column.
    """
    u = checked_sample("u", u, 2)
    return [ks_test(u[:, j], name=label, allowance=allowance) for j, label in enumerate(_labels(names, u.shape[1]))]


def ks_two_sample_test(
    x: ArrayLike, y: ArrayLike, *, name: str = "two-sample Kolmogorov-Smirnov", allowance: float = 0.0
) -> Outcome:
    """Test of sup |G - F| <= a from i.i.d. samples of both laws, for a law that can be drawn from but has no known F.

    With n = m and a = 0 the exact law of D = sup |G_n - F_n| is known, and its first term bounds it from above:

        P(D >= k/n) = 2 sum_{j >= 1} (-1)^(j-1) C(2n, n + jk)/C(2n, n) <= 2 C(2n, n + k)/C(2n, n)

    Otherwise D <= |G_n - G| + a + |F_m - F|, and both errors have the bound of `ks_test`; the deviation t is split
    between them where the two bounds have the same exponent,

        P(D >= a + t) <= 4 exp(-2 t^2 nm/(sqrt(n) + sqrt(m))^2).

    Source: gnedenko1951maximum; massart1990tight, corollary 1; power from hoeffding1963probability, theorem 2, at the
    point of the largest distance. Ties only make D smaller.

    Args:
        x: (n,), the samples that are judged.
        y: (m,), exact samples, independent of x; m = n gives the sharp tail.
        name: what was tested.
        allowance: a, the largest KS distance that is no error.

    Raises:
        ValueError: a wrong shape, values that are not finite, a negative allowance.
    """
    x, y = np.sort(checked_sample("x", x, 1)), np.sort(checked_sample("y", y, 1))
    n, m, allowance = x.size, y.size, checked_allowance(allowance)
    points = np.concatenate([x, y])
    gap = np.searchsorted(x, points, side="right") / n - np.searchsorted(y, points, side="right") / m
    distance = float(np.max(np.abs(gap)))
    exact = n == m and allowance == 0
    rate = 2 * n * m / (math.sqrt(n) + math.sqrt(m)) ** 2

    def tail(excess: float) -> float:
        if excess <= 0:
            return 0.0
        if not exact:
            return min(0.0, math.log(4) - rate * excess**2)
        k = round(excess * n)
        central = 2 * special.gammaln(n + 1) - special.gammaln(n + k + 1) - special.gammaln(n - k + 1)
        return min(0.0, math.log(2) + float(central)) if k > 0 else 0.0

    def threshold(alpha: float) -> float:
        if not exact:
            return allowance + math.sqrt(math.log(4 / alpha) / rate)
        goal = math.log(alpha)
        if tail(1.0) > goal:
            return math.inf
        low, high = 0, n  # tail(low/n) > goal >= tail(high/n)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if tail(middle / n) <= goal else (middle, high)
        return high / n

    return Outcome(
        name,
        distance,
        "KS distance",
        None,
        allowance,
        tail(distance - allowance),
        n,
        threshold,
        lambda alpha, power: threshold(alpha) + math.sqrt(-math.log1p(-power) * (1 / n + 1 / m) / 2),
    )


def anderson_darling_test(u: ArrayLike, *, name: str = "Anderson-Darling") -> Outcome:
    """Test of G = F from u_i = F(x_i), x_i ~ G i.i.d., which weighs the tails of the law up.

        A^2 = n int (G_n - F)^2/(F (1 - F)) dF = -n - (1/n) sum_i (2i - 1) (log u_(i) + log(1 - u_(n+1-i)))
        A^2 -> sum_j chi2_1/(j (j + 1))
        E exp(t A^2) -> prod_j (1 - 2t/(j (j + 1)))^(-1/2) = sqrt(-2 pi t/cos(pi sqrt(1 + 8t)/2))

    The tail of the limit law is exact (`quadratic.log_sf`). For finite n: the leading direction of the tail is the
    mean of sqrt(3) (2u - 1), which is symmetric, so there is no term of order n^(-1/2), and the relative error of p is
    O((A^2)^2/n): a few per cent at p = 1e-10 with n = 1e4.

    The effect is sqrt(A^2/n), the distance of G_n from F in L2(dF/(F (1 - F))). By the triangle inequality a true
    distance of (sqrt(q_(1-alpha)) + sqrt(q_power))/sqrt(n) is seen with the stated power, for laws G that are near F.
    There is no allowance: a bound of the KS distance does not bound this one.

    Source: anderson1952asymptotic, section 4 (example 2).

    Args:
        u: (n,), the claimed distribution function at the samples. Values at 0 and 1 are moved inside by eps/2.
        name: what was tested.

    Raises:
        ValueError: a wrong shape, values outside of [0, 1] or not finite.
    """
    half = float(np.finfo(np.float64).eps) / 2
    u = np.clip(np.sort(_unit_interval(u, 1)), half, 1 - half)
    n = u.size
    odd = 2 * np.arange(n) + 1
    statistic = max(0.0, -n - float(np.mean(odd * (np.log(u) + np.log1p(-u[::-1])))))

    def threshold(alpha: float) -> float:
        return math.sqrt(anderson_darling_quantile(math.log(alpha)) / n)

    return Outcome(
        name,
        math.sqrt(statistic / n),
        "weighted L2 distance",
        None,
        0.0,
        anderson_darling_log_sf(statistic),
        n,
        threshold,
        lambda alpha, power: threshold(alpha) + math.sqrt(anderson_darling_quantile(math.log1p(-power)) / n),
    )


def anderson_darling_log_sf(statistic: float) -> float:
    """log P(A^2 > statistic) of the limit law.

    The chi-squares beyond the first `TERMS` are replaced by their mean, 1/(TERMS + 1). Their variance, 2/(3 TERMS^3) =
    2e-7, is the order of the relative error of P.
    """
    weights, rest = _anderson_darling_weights()
    return weighted_chi_square.log_sf(statistic - rest, weights)


def anderson_darling_quantile(log_tail: float) -> float:
    """The value that A^2 exceeds with probability exp(log_tail), in the limit."""
    weights, rest = _anderson_darling_weights()
    return weighted_chi_square.quantile(log_tail, weights) + rest


def _anderson_darling_weights() -> tuple[Float[np.ndarray, " k"], float]:
    j = np.arange(1, TERMS + 1)
    return 1 / (j * (j + 1.0)), 1 / (TERMS + 1)


def _unit_interval(u: ArrayLike, ndim: int) -> Float[np.ndarray, "n ..."]:
    u = checked_sample("u", u, ndim)
    if np.any(u < 0) or np.any(u > 1):
        raise ValueError(f"u has values outside of [0, 1] (from {np.min(u):.6g} to {np.max(u):.6g}): give F(x)")
    return u


def _labels(names: Sequence[str] | None, k: int) -> list[str]:
    labels = [f"column {j}" for j in range(k)] if names is None else list(names)
    if len(labels) != k:
        raise ValueError(f"names has {len(labels)} entries for {k} columns: give one for each")
    return labels
