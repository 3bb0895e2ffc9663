"""The law of a weighted sum of chi-squares against closed forms, far into both tails."""

import math

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.statistics.weighted_chi_square import log_sf, quantile

EPS = float(np.finfo(np.float64).eps)


@pytest.mark.parametrize("k", [1, 2, 5, 40, 300])
def test_equal_weights_give_the_chi_square_law(k):
    for log_p in (-1e-3, -0.1, -0.7, -3.0, -23.0, -300.0):
        x = stats.chi2.isf(math.exp(log_p), k)
        exact = stats.chi2.logsf(x, k)
        # x is known to eps, and -d log sf/d log x is at most x/2 + k: the condition.
        assert abs(log_sf(3 * x, np.full(k, 3.0)) - exact) <= 100 * EPS * (x + k)


@pytest.mark.parametrize("ratio", [0.9, 0.3, 0.01])
@pytest.mark.parametrize("x", [0.5, 1.0, 2.2, 10.0, 60.0, 900.0])
def test_two_double_weights_give_the_hypoexponential_law(ratio, x):
    a, b = 1.0, ratio
    exact = math.log((a - b * math.exp(-(x / 2) * (1 / b - 1 / a))) / (a - b)) - x / (2 * a)
    assert abs(log_sf(x, [a, b, a, b]) - exact) <= 100 * EPS * (x + 1 / (1 - ratio))


def test_lower_tail_keeps_its_relative_accuracy_as_a_complement():
    for x in (1e-3, 0.1, 1.0):
        assert log_sf(x, np.ones(4)) == pytest.approx(stats.chi2.logsf(x, 4), rel=1e-9)


def test_probabilities_of_many_unequal_weights_agree_with_draws():
    weights = 1 / np.arange(1, 60) ** 1.5
    rng, n = np.random.default_rng(1), 40_000
    drawn = np.sort(np.concatenate([rng.chisquare(1.0, (n // 4, 59)) @ weights for _ in range(4)]))
    for q in (0.02, 0.3, 0.5, 0.6, 0.9, 0.999):
        p = math.exp(log_sf(float(drawn[int(q * n)]), weights))
        assert abs(p - (1 - q)) <= 4.9 * math.sqrt(q * (1 - q) / n)


def test_quantile_inverts_the_tail():
    weights = np.array([2.0, 0.5, 0.5, 1e-3])
    for log_p in (-1e-3, -1.0, -23.0, -600.0):
        assert log_sf(quantile(log_p, weights), weights) == pytest.approx(log_p, rel=1e-9)


def test_weights_of_no_size_do_not_count():
    assert log_sf(30.0, [1.0, 0.5, 1e-20, 0.0, -1e-18]) == log_sf(30.0, [1.0, 0.5])


@pytest.mark.parametrize("weights", [[], [0.0], [1.0, -0.1], [1.0, math.nan], [math.inf]])
def test_weights_that_are_no_eigenvalues_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        log_sf(1.0, weights)
