"""What the tests of the statistical tests share: uniformity of p-values, and rates."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RATE = 1e-6
"""Rate of false alarms of each assertion."""


def assert_uniform(p: ArrayLike) -> None:
    """The p-values are uniform: Kolmogorov-Smirnov, exact null law, at the level `RATE`."""
    found = stats.kstest(np.asarray(p), "uniform", method="exact")
    assert found.pvalue > RATE, f"KS distance {found.statistic:.3f} of {np.size(p)} p-values from uniform"


def assert_super_uniform(p: ArrayLike) -> None:
    """P(p <= t) <= t for all t: the one-sided Kolmogorov-Smirnov test, exact null law, at the level `RATE`."""
    found = stats.kstest(np.asarray(p), "uniform", alternative="greater", method="exact")
    assert found.pvalue > RATE, f"the p-values are too small, by {found.statistic:.3f}"


def assert_rate_at_least(seen: int, runs: int, power: float) -> None:
    """`seen` of `runs` are no fewer than a probability of `power` gives, up to a binomial tail of `RATE`."""
    assert stats.binom.cdf(seen, runs, power) > RATE, f"{seen} of {runs} seen, {power:.2f} was promised"
