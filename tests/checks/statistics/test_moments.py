"""z tests: level in the bulk and at 1e-10, and the power that they promise."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.statistics.moments import critical_value, log_tail, mean_test, mean_tests
from sgmcmc_verification.checks.statistics.outcome import bonferroni
from sgmcmc_verification.reports.pages.tail_calibration import mean_tail, standardised
from tests.helpers.statistics_tools import assert_rate_at_least, assert_uniform

LEVEL = 1e-10


def test_p_values_of_normal_values_are_uniform():
    x = np.random.default_rng(1).normal(2.0, 3.0, (2000, 25))
    assert_uniform([mean_test(row, 2.0, skewness=0.0).p for row in x])


def test_p_values_of_skewed_values_are_uniform_with_the_skewness_of_the_sample():
    x = np.random.default_rng(2).exponential(1.0, (2000, 1500))
    assert_uniform([mean_test(row, 1.0).p for row in x])


@pytest.mark.parametrize("side", [1, -1])
def test_tail_of_a_second_moment_is_right_at_1e_minus_10(side):
    """Each side at n = 1e4, where the normal tail is off by a factor of 13; the expansion leaves c z^4/n."""
    atoms, n = standardised("square of a normal"), 10_000
    gamma, kappa = float(np.mean(atoms**3)), float(np.mean(atoms**4)) - 3
    z = critical_value(LEVEL / 2, n, side * gamma)
    found = mean_tail("square of a normal", n, side, 400)
    assert found.nominal == pytest.approx(LEVEL / 2, rel=1e-6)
    next_order = math.expm1((abs(kappa / 4 - gamma**2 / 2) + kappa / 12 + 0.25) * z**4 / n)
    assert abs(found.estimate - found.nominal) <= 4.9 * found.error + next_order * found.nominal
    normal = stats.norm.sf(z)  # what the normal tail would have claimed
    assert not abs(found.estimate - normal) <= 4.9 * found.error + next_order * normal


@pytest.mark.parametrize("n", [5, 50, 2000])
@pytest.mark.parametrize("z", [0.3, 3.0, 8.0, 29.9, 30.1, 200.0])
def test_tail_of_normal_values_is_student(n, z):
    with mpmath.workdps(60):
        nu = mpmath.mpf(n - 1)
        tail = mpmath.betainc(nu / 2, mpmath.mpf(1) / 2, 0, nu / (nu + mpmath.mpf(z) ** 2), regularized=True) / 2
        exact = float(mpmath.log(tail))
    # Student's density has the exponent (nu + 1)/2: that is its condition.
    roundoff = 8 * (n + abs(exact)) * np.finfo(float).eps
    assert abs(log_tail(z, n, 0.0) - exact) <= roundoff + (2 * (n - 1 + z**2) / ((n - 1) * z**4) if z > 30 else 0.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_shift_is_detected_at_the_promised_rate(sign):
    rng, n, power = np.random.default_rng(4), 20_000, 0.9
    seen = 0
    promised = mean_test(rng.exponential(1.0, n), 1.0).detectable(LEVEL, power)
    for _ in range(300):
        seen += mean_test(rng.exponential(1.0, n) + sign * promised, 1.0).rejects(LEVEL)
    assert_rate_at_least(seen, 300, power)


def test_rejection_and_threshold_agree():
    rng = np.random.default_rng(6)
    for shift in np.linspace(-0.12, 0.12, 13):
        outcome = mean_test(rng.gamma(2.0, 1.0, 5000) + shift, 2.0, allowance=0.01)
        for alpha in (1e-2, 1e-6, LEVEL):
            assert outcome.rejects(alpha) == (outcome.effect >= outcome.threshold(alpha))


def test_an_effect_of_the_size_of_the_allowance_is_no_error_and_a_larger_one_is():
    x = np.random.default_rng(7).normal(size=(2000, 400))
    p = np.sort([mean_test(row + 0.1, 0.0, allowance=0.1).p for row in x])
    for alpha in (0.3, 0.05, 0.01):  # super-uniform: a one-sided test of twice the one-sided p
        assert np.mean(p <= alpha) <= alpha + 4.9 * math.sqrt(alpha * (1 - alpha) / p.size)
    outcome = mean_test(x[0], 0.0, allowance=0.1)
    assert mean_test(x[0] + outcome.detectable(LEVEL, 0.999), 0.0, allowance=0.1).rejects(LEVEL)


def test_a_constant_is_no_error_if_it_is_right():
    sphere = np.full(1000, 1 / 3) * 3.0000000000000004
    assert mean_test(sphere, 1.0).log_p == 0.0
    assert mean_test(np.full(1000, 1.001), 1.0).log_p == -math.inf


def test_a_sample_too_small_for_the_level_cannot_reject_at_it():
    heavy = np.random.default_rng(8).lognormal(0.0, 2.0, 200)
    outcome = mean_test(heavy, 1e6)
    assert math.isinf(outcome.detectable(LEVEL, 0.9))
    assert not outcome.rejects(LEVEL)
    assert math.isinf(critical_value(LEVEL, 100, -5.0))


def test_columns_are_held_to_their_own_expectations_and_combine():
    x = np.random.default_rng(9).normal([0.0, 5.0, -1.0], [1.0, 2.0, 3.0], (40_000, 3))
    outcomes = mean_tests(x, [0.0, 5.0, -1.0], names=["a", "b", "c"], scale=[1.0, 2.0, 3.0])
    assert [o.expected for o in outcomes] == [0.0, 5.0, -1.0]
    together = bonferroni("means", outcomes)
    assert together.log_p == pytest.approx(min(0.0, min(o.log_p for o in outcomes) + math.log(3)))
    assert together.threshold(1e-6) == min(outcomes, key=lambda o: o.log_p).threshold(1e-6 / 3)
    wrong = bonferroni("means", mean_tests(x, [0.0, 5.0, -1.3], names=["a", "b", "c"]))
    assert wrong.name == "means: c"
    assert wrong.rejects(LEVEL)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_test([1.0], 0.0), "values has 1 samples"),
        (lambda: mean_test([1.0, math.nan], 0.0), "values has 1 values that are not finite"),
        (lambda: mean_test([[1.0], [2.0]], 0.0), "values has shape"),
        (lambda: mean_test([1.0, 2.0], 0.0, allowance=-1.0), "allowance is -1"),
        (lambda: mean_test([1.0, 2.0], 0.0, scale=0.0), "scale is 0"),
        (lambda: mean_tests([[1.0], [2.0]], 0.0, names=["a", "b"]), "names has 2 entries"),
        (lambda: bonferroni("none", []), "outcomes is empty"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
