"""The law of a weighted sum of chi-squares, exact in its far tail, and the test of a mean vector that it decides."""

import math
from collections.abc import Callable

import numpy as np
import scipy
from jaxtyping import Complex, Float

from sgmcmc_verification.checks.statistics.outcome import Outcome, checked_allowance, normal_quantile
from sgmcmc_verification.targets.numerics.arrays import ArrayLike

STEP, REACH = 0.05, 11.0
"""Spacing and half-length of the trapezoidal rule, in standard deviations of the tilted law."""
GROUP = 8
"""Factors of the transform that share a logarithm."""
APART = 0.3
"""Distance of the contour from the pole at 0, in the same unit."""


def log_sf(x: float, weights: ArrayLike) -> float:
    """log P(Q > x) of Q = sum_j lambda_j chi2_1 with positive weights lambda_j, at any depth of the tail.

        P(Q > x) = (1/2 pi i) int_C exp(K(t) - t x) dt/t,    K(t) = -(1/2) sum_j log(1 - 2 lambda_j t)

    The contour C is the parabola t = c + K'''(c)/(6 K''(c)) v^2 + i v, the path of steepest descent through the saddle
    point K'(c) = x to second order. On it the integrand decays like a Gaussian, so that the trapezoidal rule converges
    geometrically and, as nothing cancels, with a relative error near round-off however small the probability is.
    For x below the mean the contour passes to the left of the pole at 0, which gives P(Q > x) - 1; next to the mean
    it is moved to the right of the pole.

    Source: imhof1961computing inverts the same function along the imaginary axis, which has an absolute error only.

    Args:
        x: the value of the statistic.
        weights: (k,), the lambda_j > 0; zeros are dropped.

    Raises:
        ValueError: no positive weight, or a negative or non-finite one.
    """
    weights = positive_weights(weights)
    if x <= 0:
        return 0.0
    if x == math.inf:
        return -math.inf
    scale = float(weights[0])
    weights, x = weights / scale, x / scale
    spread = math.sqrt(2 * float(np.sum(weights**2)))
    c = _saddle(x, weights)
    if abs(c) * spread < APART:
        c = APART / spread
    if -c * x > 1e4:  # P(Q <= x) is below exp(K(c) - c x), far below round-off of 1
        return 0.0
    tilted = weights / (1 - 2 * weights * c)
    second, third = 2 * float(np.sum(tilted**2)), 8 * float(np.sum(tilted**3))
    s = np.arange(STEP / 2, REACH, STEP)  # the integrand at -v is the conjugate: half of the contour is enough
    v = s / math.sqrt(second)
    bend = third / (6 * second)
    t = c + bend * v**2 + 1j * v
    exponent = -0.5 * _log_product(tilted, t - c) - (t - c) * x
    integral = float(np.sum(np.imag(np.exp(exponent) / t * (2 * bend * v + 1j)))) * STEP / math.sqrt(second) / math.pi
    peak = -0.5 * float(np.sum(np.log1p(-2 * weights * c))) - c * x
    if c > 0:
        return min(0.0, peak + math.log(integral))
    return math.log1p(-min(1.0, -integral * math.exp(peak)))


def quantile(log_tail: float, weights: ArrayLike) -> float:
    """x with log P(Q > x) = log_tail < 0."""
    weights = positive_weights(weights)
    # P(Q > x) <= P(lambda_1 chi2_k > x) <= exp(-(x/lambda_1 - k)/4) for x >= 6 k lambda_1: a bracket from above.
    upper = float(weights[0]) * (6 * weights.size + 4 * abs(log_tail))
    return scipy.optimize.root_scalar(
        lambda x: log_sf(x, weights) - log_tail, bracket=(0.0, upper), xtol=1e-13 * upper, rtol=1e-12
    ).root


def positive_weights(weights: ArrayLike) -> Float[np.ndarray, " k"]:
    """The weights that count, in decreasing order; those below round-off of the largest are dropped.

    Raises:
        ValueError: no positive weight, a weight that is not finite, or one that is negative beyond round-off.
    """
    array = np.sort(np.asarray(weights, dtype=np.float64).ravel())[::-1]
    if array.size == 0 or not np.all(np.isfinite(array)) or array[0] <= 0:
        raise ValueError("weights: give at least one positive number, and only finite ones")
    roundoff = array.size * float(np.finfo(np.float64).eps) * float(array[0])
    if array[-1] < -roundoff:
        raise ValueError(f"weights: {array[-1]:.3g} is negative; they are eigenvalues of a covariance")
    return array[array > roundoff]


def _log_product(
    tilted: Float[np.ndarray, " k"], shift: Complex[np.ndarray, " nodes"]
) -> Complex[np.ndarray, " nodes"]:
    """sum_j log(1 - 2 tilted_j shift) along a path that starts near 0, where the logarithms are near 0 as well.

    `GROUP` factors are multiplied before a logarithm is taken, whose imaginary part is made continuous along the path:
    from one node to the next the argument of a factor changes by less than 2 STEP, so that of a group by less than pi.
    """
    padded = np.concatenate([tilted, np.zeros(-tilted.size % GROUP)]).reshape(-1, GROUP)
    total = np.zeros(shift.size, dtype=np.complex128)
    for group in padded:
        product = np.prod(1 - 2 * group[:, None] * shift, axis=0)
        total += np.log(np.abs(product)) + 1j * np.unwrap(np.angle(product))
    return total


def _saddle(x: float, weights: Float[np.ndarray, " k"]) -> float:
    """The c < 1/(2 max weight) with K'(c) = sum lambda/(1 - 2 lambda c) = x; the largest weight is 1."""
    k = weights.size

    def excess(c: float) -> float:
        return float(np.sum(weights / (1 - 2 * weights * c))) - x

    # 1/(1 - 2c) <= K'(c) for c >= 0 and K'(c) <= -k/(2c) for c < 0 bracket the root.
    lower, upper = -0.5 * k / x - 1e-12, 0.5 * (1 - 1 / (x + 1)) if x > 0 else 0.0
    while excess(upper) < 0:
        upper = 0.5 - (0.5 - upper) / 4
    return scipy.optimize.root_scalar(excess, bracket=(lower, upper), xtol=1e-14, rtol=1e-10).root


def norm_test(
    name: str,
    unit: str,
    difference: Float[np.ndarray, " k"],
    covariance: Float[np.ndarray, "j j"],
    variance: float,
    n: int,
    allowance: float = 0.0,
    bound: float | None = None,
) -> Outcome:
    """Test of |E phi - mu| <= a from the mean of a vector of features, in the Euclidean norm.

        d = mean phi - mu ~ N(E phi - mu, v C),    P(|d| >= a + r) <= P(sum_j lambda_j chi2_1 >= r^2/v)

    by the triangle inequality, lambda_j the eigenvalues of C. The effect is sqrt(max(0, |d|^2 - v tr C)), the square
    root of the unbiased estimate of |E phi - mu|^2 (the U-statistic, if C is the covariance of the sample).

    A true distance of threshold + z_power sqrt(v lambda_1) is seen with the stated power: along the direction e of the
    true difference, |d| >= e.d, a normal variable of variance at most v lambda_1 (to first order in the difference,
    which moves the covariance as well).

    Args:
        name: what was tested.
        unit: of the effect.
        difference: (k,), d.
        covariance: (k, k), C, of one feature vector under the null hypothesis; with `bound` its trace alone counts, and
            (1, 1) will do.
        variance: v, 1/n for one sample and 1/n + 1/m for two.
        n: sample size.
        allowance: a, the largest norm that is no error.
        bound: where given, the largest |phi(x) - phi(y)|; the tail is then the one of bounded differences,
            P(|d - E d| >= sqrt(v tr C) + r) <= exp(-2 r^2/(v bound^2)), which holds for every n.

    Raises:
        ValueError: as `checked_allowance`; a covariance without positive eigenvalue.
    """
    allowance = checked_allowance(allowance)
    weights = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    distance, trace = float(np.linalg.norm(difference)), variance * float(np.sum(weights))
    noise = math.sqrt(trace)

    def tail(excess: float) -> float:
        if excess <= 0:
            return 0.0
        if bound is None:
            return log_sf(excess**2 / variance, weights)
        return -2 * max(0.0, excess - noise) ** 2 / (variance * bound**2)

    def critical(alpha: float) -> float:
        if bound is None:
            return allowance + math.sqrt(variance * quantile(math.log(alpha), weights))
        return allowance + noise + bound * math.sqrt(-variance * math.log(alpha) / 2)

    def detectable(alpha: float, power: float) -> float:
        if bound is None:
            error = math.sqrt(variance * float(weights[-1])) * normal_quantile(math.log1p(-power))
        else:
            error = noise + bound * math.sqrt(-variance * math.log1p(-power) / 2)
        return critical(alpha) + error

    return Outcome(
        name,
        math.sqrt(max(0.0, distance**2 - trace)),
        unit,
        None,
        allowance,
        tail(distance - allowance),
        n,
        lambda alpha: math.sqrt(max(0.0, critical(alpha) ** 2 - trace)),
        detectable,
    )


def moments_of(
    features: Callable[..., Float[np.ndarray, "block k"]], *arrays: Float[np.ndarray, "n ..."], block: int = 8192
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Mean (k,) and covariance (k, k) of features(*arrays) (n, k), a block of samples at a time."""
    n, total, square = arrays[0].shape[0], 0.0, 0.0
    for start in range(0, n, block):
        phi = features(*(a[start : start + block] for a in arrays))
        total = total + np.sum(phi, axis=0)
        square = square + phi.T @ phi
    mean = np.asarray(total) / n
    return mean, (np.asarray(square) - n * np.outer(mean, mean)) / (n - 1)
