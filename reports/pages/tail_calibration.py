"""Tails of the statistical tests at 1e-10, by importance sampling and by exact finite laws."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from sgmcmc_verification.checks.statistics.distribution import (
    anderson_darling_quantile,
    anderson_darling_test,
    ks_test,
    ks_two_sample_test,
)
from sgmcmc_verification.checks.statistics.ksd import stein_features, stein_test
from sgmcmc_verification.checks.statistics.mmd import fourier_features, fourier_frequencies, gaussian_moments, mmd_test
from sgmcmc_verification.checks.statistics.moments import critical_value, log_tail, mean_test
from sgmcmc_verification.checks.statistics.outcome import Outcome
from sgmcmc_verification.checks.statistics.weighted_chi_square import quantile

LEVEL = 1e-10
ATOMS = 100_000
"""Equally likely atoms at the quantiles of a law that stand for it: the law that is sampled is the discrete one."""


class Tail(NamedTuple):
    """Probability of a rejection under the null: estimated, its standard error (0 if exact), and claimed."""

    estimate: float
    error: float
    nominal: float

    @property
    def ratio(self) -> float:
        """Estimated over claimed."""
        return self.estimate / self.nominal


def _levels() -> np.ndarray:
    return (np.arange(ATOMS) + 0.5) / ATOMS


LAWS: dict[str, Callable[[], np.ndarray]] = {
    "square of a normal": lambda: special.ndtri(_levels()) ** 2,
    "exponential": lambda: -np.log1p(-_levels()),
    "Student, 6 degrees": lambda: stats.t.ppf(_levels(), 6),
    "uniform": _levels,
}
"""Laws of f for the tail of the z test, as atoms."""


class _Tilted:
    """Samples of the atoms with weights proportional to exp(exponent)."""

    def __init__(self, exponent: np.ndarray) -> None:
        self.normaliser = float(np.logaddexp.reduce(exponent)) - math.log(exponent.size)
        self._cumulative = np.cumsum(np.exp(exponent - self.normaliser)) / exponent.size

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Indices of n atoms."""
        found = np.searchsorted(self._cumulative, rng.random(n) * self._cumulative[-1])
        return np.minimum(found, self._cumulative.size - 1)


def _mean(weights: np.ndarray, nominal: float) -> Tail:
    return Tail(float(np.mean(weights)), float(np.std(weights)) / math.sqrt(weights.size), nominal)


def standardised(law: str) -> np.ndarray:
    """Atoms of a law of `LAWS`, with mean 0 and variance 1."""
    atoms = LAWS[law]()
    return (atoms - atoms.mean()) / atoms.std()


def mean_tail(law: str, n: int, side: int, runs: int, seed: int = 1, level: float = LEVEL) -> Tail:
    """Level of one side of `mean_test`, with the skewness of the sample, where the nominal one is near level/2.

    The atoms are tilted by exp(th X - (th X)^2/2), th = z/sqrt(n): under that law the self-normalised statistic is near
    z, the critical value at the true skewness.
    """
    rng, base = np.random.default_rng(seed), standardised(law)
    skewness = side * float(np.mean(base**3))
    z = critical_value(level / 2, n, skewness)
    tilt = side * z / math.sqrt(n)
    exponent = tilt * base - (tilt * base) ** 2 / 2
    tilted, goal, weights = _Tilted(exponent), log_tail(z, n, skewness), np.zeros(runs)
    for r in range(runs):
        drawn = tilted.draw(rng, n)
        outcome = mean_test(base[drawn], 0.0)
        assert outcome.measured is not None
        if outcome.measured * side > 0 and outcome.log_p <= math.log(2) + goal:
            weights[r] = math.exp(n * tilted.normaliser - float(np.sum(exponent[drawn])))
    return _mean(weights, math.exp(goal))


def norm_tail(
    decide: Callable[[np.ndarray], Outcome],
    atoms: np.ndarray,
    features: np.ndarray,
    n: int,
    runs: int,
    seed: int = 2,
    level: float = LEVEL,
) -> Tail:
    """Level of a test that `quadratic.norm_test` decides.

    The atoms are tilted by exp(+-t e.(phi - E phi)), e the leading eigenvector of the features' covariance, with both
    signs equally likely, and t such that the mean lies at the critical value.

    Args:
        decide: n samples -> outcome.
        atoms: (A, d) equally likely points.
        features: (A, k), phi at the atoms.
        n: sample size.
        runs: number of runs.
    """
    rng = np.random.default_rng(seed)
    centred = features - features.mean(axis=0)
    weights, vectors = np.linalg.eigh(centred.T @ centred / len(atoms))
    along = centred @ vectors[:, -1] / math.sqrt(weights[-1])
    t = math.sqrt(quantile(math.log(level), np.maximum(weights, 0.0)) / float(weights[-1]) / n)
    tilted = {sign: _Tilted(sign * t * along) for sign in (1, -1)}
    found = np.zeros(runs)
    for r in range(runs):
        drawn = tilted[1 if r % 2 else -1].draw(rng, n)
        if decide(atoms[drawn]).rejects(level):
            total = t * float(np.sum(along[drawn]))
            up, down = (sign * total - n * tilted[sign].normaliser for sign in (1, -1))
            found[r] = math.exp(math.log(2) - float(np.logaddexp(up, down)))
    return _mean(found, level)


def mmd_tail(known: bool, n: int, runs: int) -> Tail:
    """Level of `mmd_test` for N(0, 1), with the exact covariance of the features or that of the sample."""
    frequencies = fourier_frequencies(7, 1, 1.0, count=2, factors=(0.5, 2.0))
    mu, covariance = gaussian_moments(frequencies, [0.0], [[1.0]])
    atoms = special.ndtri(_levels())[:, None]
    decide = lambda x: mmd_test(x, frequencies, mu, covariance if known else None)
    return norm_tail(decide, atoms, fourier_features(atoms, frequencies), n, runs)


def stein_tail(n: int, runs: int) -> Tail:
    """Level of `stein_test` for N(0, 1)."""
    locations = np.array([[-1.0], [0.5], [2.0]])
    atoms = special.ndtri(_levels())[:, None]
    decide = lambda x: stein_test(x, -x, locations)
    return norm_tail(decide, atoms, stein_features(atoms, -atoms, locations, 1.0), n, runs)


def anderson_darling_tail(n: int, runs: int, seed: int = 3, level: float = LEVEL) -> Tail:
    """Level of `anderson_darling_test`: u is tilted by exp(+-t (2u - 1)), the direction of the largest weight.

    A^2 = (sqrt(n) mean of sqrt(3) (2u - 1))^2/2 + ..; the tilted mean of 2u - 1 is t/3 to first order.
    """
    rng = np.random.default_rng(seed)
    t = 3 * math.sqrt(2 * anderson_darling_quantile(math.log(level)) / 3 / n)
    normaliser, weights = math.log(math.sinh(t) / t), np.zeros(runs)
    for r in range(runs):
        y = np.log1p(rng.random(n) * math.expm1(2 * t)) / t - 1  # 2u - 1 by the inverse of its tilted law
        u = (1 + (y if r % 2 else -y)) / 2
        if anderson_darling_test(u).rejects(level):
            weights[r] = math.exp(n * normaliser) / math.cosh(t * float(np.sum(2 * u - 1)))  # a half of each sign
    return _mean(weights, level)


def ks_tail(n: int, level: float = LEVEL) -> Tail:
    """Level of `ks_test` by the exact law of the statistic for n samples (SciPy)."""
    threshold = ks_test(np.linspace(0, 1, n)).threshold(level)
    return Tail(float(stats.kstwo.sf(threshold, n)), 0.0, level)


def ks_two_sample_exact(n: int, k: int) -> float:
    """P(D >= k/n) of two samples of the same size n, by the full alternating series in exact arithmetic."""
    terms = [math.comb(2 * n, n + j * k) for j in range(1, n // k + 1)]
    return 2 * float(Fraction(sum(t * (-1) ** j for j, t in enumerate(terms)), math.comb(2 * n, n)))


def ks_two_sample_tail(n: int, level: float = LEVEL) -> Tail:
    """Level of `ks_two_sample_test` for equal sizes by the exact law; the claimed one is that of its lattice point."""
    y = np.arange(n) + 0.5
    k = round(ks_two_sample_test(y, y).threshold(level) * n)
    return Tail(ks_two_sample_exact(n, k), 0.0, ks_two_sample_test(y + k, y).p)


TAILS: dict[str, Callable[[int], Tail]] = {
    **{
        f"z test, {law}, n = {n:g}, {'upper' if side > 0 else 'lower'} side": (
            lambda runs, law=law, n=n, side=side: mean_tail(law, n, side, runs)
        )
        for law in LAWS
        for n in (10_000, 100_000)
        for side in (1, -1)
    },
    "Kolmogorov-Smirnov, n = 1000": lambda runs: ks_tail(1000),
    "Kolmogorov-Smirnov, n = 100000": lambda runs: ks_tail(100_000),
    "two-sample Kolmogorov-Smirnov, n = m = 1000": lambda runs: ks_two_sample_tail(1000),
    "Anderson-Darling, n = 10000": lambda runs: anderson_darling_tail(10_000, runs),
    "MMD, exact covariance, n = 10000": lambda runs: mmd_tail(True, 10_000, runs),
    "MMD, covariance of the sample, n = 10000": lambda runs: mmd_tail(False, 10_000, runs),
    "MMD, covariance of the sample, n = 100000": lambda runs: mmd_tail(False, 100_000, runs),
    "Stein discrepancy, n = 10000": lambda runs: stein_tail(10_000, runs),
    "Stein discrepancy, n = 100000": lambda runs: stein_tail(100_000, runs),
}
"""Name -> the tail from a number of runs (which exact ones do not need)."""
