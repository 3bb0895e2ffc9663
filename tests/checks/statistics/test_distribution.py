"""Tests of a whole law in one dimension: exact tails at 1e-10, level in the bulk, and the power that they promise."""

import math
import warnings

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_verification.checks.statistics.distribution import (
    TERMS,
    anderson_darling_log_sf,
    anderson_darling_quantile,
    anderson_darling_test,
    ks_test,
    ks_tests,
    ks_two_sample_test,
)
from sgmcmc_verification.checks.statistics.outcome import bonferroni
from sgmcmc_verification.reports.pages.tail_calibration import anderson_darling_tail, ks_tail, ks_two_sample_exact
from tests.helpers.statistics_tools import assert_rate_at_least, assert_super_uniform, assert_uniform

LEVEL = 1e-10


# Kolmogorov-Smirnov ---------------------------------------------------------------------------------------------------


def test_ks_distance_is_that_of_scipy():
    u = np.random.default_rng(1).random((20, 57)) ** 1.1
    for row in u:
        assert ks_test(row).effect == pytest.approx(stats.kstest(row, "uniform").statistic, rel=1e-12)


@pytest.mark.parametrize("n", [50, 1000, 20_000])
def test_ks_level_is_kept_and_nothing_is_lost_at_1e_minus_10(n):
    exact = ks_tail(n).estimate  # the law of D for finite n
    assert exact <= LEVEL * (1 + 1e-6)
    # The first correction to the limit law is 2x/(3 sqrt n) in the exponent's derivative: x = D sqrt n.
    x = ks_test(np.linspace(0, 1, n)).threshold(LEVEL) * math.sqrt(n)
    assert math.log(exact / LEVEL) >= -(4 * x * 2 / 3) * x / math.sqrt(n) * 1.5


def test_ks_p_values_are_super_uniform_and_those_of_the_exact_law_uniform():
    u = np.random.default_rng(2).random((2000, 100))
    outcomes = [ks_test(row) for row in u]
    assert_super_uniform([o.p for o in outcomes])
    assert_uniform([stats.kstwo.sf(o.effect, o.n) for o in outcomes])


@pytest.mark.parametrize("allowance", [0.0, 0.01])
def test_a_ks_distance_is_detected_at_the_promised_rate(allowance):
    rng, n, power = np.random.default_rng(3), 3000, 0.9
    d = ks_test(rng.random(n), allowance=allowance).detectable(LEVEL, power)
    seen = 0
    for _ in range(300):
        u = rng.random(n)
        # G(x) - F(x) is largest at 1/2: mass d is moved from the right half to the left one, uniformly in each
        u = np.where(u < 0.5 + d, u * 0.5 / (0.5 + d), 1 - (1 - u) * 0.5 / (0.5 - d))
        seen += ks_test(u, allowance=allowance).rejects(LEVEL)
    assert_rate_at_least(seen, 300, power)


def test_a_distance_of_half_a_per_cent_is_detected_with_a_million():
    assert ks_test(np.linspace(0, 1, 1_000_000)).detectable(LEVEL, 0.99) < 0.005


def test_ks_of_a_law_at_the_allowance_is_no_error():
    rng, d = np.random.default_rng(4), 0.1
    u = rng.random((2000, 200))
    u = np.where(u < 0.5 + d, u * 0.5 / (0.5 + d), 1 - (1 - u) * 0.5 / (0.5 - d))
    assert_super_uniform([ks_test(row, allowance=d).p for row in u])


def test_columns_combine_and_name_the_worst():
    u = np.random.default_rng(5).random((5000, 3))
    assert not bonferroni("marginals", ks_tests(u)).rejects(1e-6)
    u[:, 1] **= 1.3
    found = bonferroni("marginals", ks_tests(u, names=["x", "y", "z"]))
    assert found.rejects(LEVEL)
    assert found.name == "marginals: y"


# Two samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 40, 120])
def test_two_sample_tail_is_the_exact_one_in_the_tail_and_above_it_in_the_bulk(n):
    y = np.arange(n) + 0.5
    for k in range(1, n + 1):
        found = ks_two_sample_test(y + k, y)
        assert round(found.effect * n) == k
        exact = ks_two_sample_exact(n, k)
        assert found.p >= exact * (1 - 1e-9)
        if exact < 1e-3:  # the next term of the series is C(2n, n + 2k)/C(2n, n + k) smaller
            assert found.p == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize(("n", "m"), [(300, 300), (200, 1000)])
def test_two_sample_p_values_are_super_uniform(n, m):
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(1000, n)), rng.normal(size=(1000, m))
    assert_super_uniform([ks_two_sample_test(a, b).p for a, b in zip(x, y, strict=True)])
    shifted = stats.norm.cdf(0.05) - stats.norm.cdf(-0.05)  # the exact KS distance of N(0, 1) and N(0.1, 1)
    assert_super_uniform([ks_two_sample_test(a + 0.1, b, allowance=shifted).p for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize(("n", "m", "allowance"), [(1500, 1500, 0.0), (1000, 4000, 0.0), (1500, 1500, 0.02)])
def test_a_two_sample_distance_is_detected_at_the_promised_rate(n, m, allowance):
    rng, power = np.random.default_rng(7), 0.9
    d = ks_two_sample_test(rng.random(n), rng.random(m), allowance=allowance).detectable(LEVEL, power)
    shift = 2 * stats.norm.ppf((1 + d) / 2)  # KS distance of N(0, 1) and N(shift, 1) is 2 Phi(shift/2) - 1
    seen = sum(
        ks_two_sample_test(rng.normal(shift, 1.0, n), rng.normal(size=m), allowance=allowance).rejects(LEVEL)
        for _ in range(200)
    )
    assert_rate_at_least(seen, 200, power)


@pytest.mark.parametrize("alpha", [0.01, LEVEL])
def test_rejection_and_threshold_agree_at_every_value_of_the_statistic(alpha):
    n = 60
    y = np.arange(n) + 0.5
    for k in range(1, n + 1):
        found = ks_two_sample_test(y + k, y)
        assert found.rejects(alpha) == (found.effect >= found.threshold(alpha))
    assert math.isinf(ks_two_sample_test([0.1, 0.2], [0.3, 0.4]).threshold(LEVEL))


# Anderson-Darling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [0.3, 0.8, 1.25, 2.492, 3.857, 10.0, 24.0])
def test_anderson_darling_tail_inverts_the_closed_form_of_its_transform(statistic):
    """P(A^2 > x) has the Laplace transform (1 - phi(s))/s with phi(s) = sqrt(2 pi s/cos(pi sqrt(1 - 8s)/2))."""

    def transform(s):
        return (1 - mpmath.sqrt(2 * mpmath.pi * s / mpmath.cos(mpmath.pi * mpmath.sqrt(1 - 8 * s) / 2).real)) / s

    exact = mpmath.invertlaplace(transform, statistic, method="stehfest", degree=100)  # real s: no branches
    # The terms that are replaced by their mean have the variance v = 2/(3 TERMS^3), which moves P by v P''/2.
    below, here, above = (math.exp(anderson_darling_log_sf(statistic + h)) for h in (-0.01, 0.0, 0.01))
    moved = (below - 2 * here + above) / 0.01**2 / (3 * TERMS**3) / here
    assert anderson_darling_log_sf(statistic) == pytest.approx(
        float(mpmath.log(exact)), abs=1.1 * abs(moved), rel=1e-10
    )


def test_anderson_darling_statistic_is_that_of_scipy():
    x = np.random.default_rng(8).normal(size=200)
    z = (x - x.mean()) / x.std(ddof=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        reference = stats.anderson(x, "norm").statistic
    assert anderson_darling_test(special.ndtr(z)).effect == pytest.approx(math.sqrt(reference / 200), rel=1e-9)


def test_anderson_darling_p_values_are_uniform():
    u = np.random.default_rng(9).random((2000, 300))
    assert_uniform([anderson_darling_test(row).p for row in u])


def test_anderson_darling_tail_is_right_at_1e_minus_10():
    """n = 1e4, by importance sampling; what finite n leaves is of order (A^2)^2/n."""
    found = anderson_darling_tail(10_000, 300)
    next_order = anderson_darling_quantile(math.log(LEVEL)) ** 2 / 10_000
    assert abs(found.estimate - LEVEL) <= 4.9 * found.error + math.expm1(next_order) * LEVEL
    assert found.error < 0.25 * LEVEL  # the estimate has seen the tail


def test_a_weighted_distance_is_detected_at_the_promised_rate():
    rng, n, power = np.random.default_rng(11), 4000, 0.9
    d = anderson_darling_test(rng.random(n)).detectable(LEVEL, power)
    # G(u) - u = c u (1 - u): the squared distance is c^2 int u (1 - u) du = c^2/6.
    c = d * math.sqrt(6)
    seen = 0
    for _ in range(200):
        v = rng.random(n)  # G(u) = u + c u (1 - u) = v
        u = ((1 + c) - np.sqrt((1 + c) ** 2 - 4 * c * v)) / (2 * c)
        seen += anderson_darling_test(u).rejects(LEVEL)
    assert_rate_at_least(seen, 200, power)


def test_points_outside_of_the_claimed_support_are_seen():
    u = np.random.default_rng(12).random(10_000)
    u[:300] = 0.0
    assert anderson_darling_test(u).rejects(LEVEL)
    u[:300] = 1.0
    assert anderson_darling_test(u).rejects(LEVEL)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ks_test([0.5]), "u has 1 samples"),
        (lambda: ks_test([0.5, 1.5]), "outside of"),
        (lambda: ks_test([0.5, math.inf]), "not finite"),
        (lambda: anderson_darling_test([[0.5, 0.2]]), "u has shape"),
        (lambda: ks_two_sample_test([0.5, 0.2], [math.nan, 0.1]), "y has 1 values"),
        (lambda: ks_test([0.5, 0.2], allowance=-0.1), "allowance"),
        (lambda: ks_tests([[0.5], [0.2]], names=["a", "b"]), "names has 2 entries"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
