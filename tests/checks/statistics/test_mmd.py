"""MMD through Fourier features: exact moments, level in the bulk and at 1e-10, and the power that it promises."""

import math

import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_verification.checks.statistics.mmd import (
    FACTORS,
    fourier_features,
    fourier_frequencies,
    gaussian_moments,
    median_distance,
    mmd_test,
    mmd_two_sample_test,
)
from sgmcmc_verification.checks.statistics.weighted_chi_square import moments_of
from sgmcmc_verification.reports.pages.tail_calibration import mmd_tail
from tests.helpers.statistics_tools import assert_rate_at_least, assert_super_uniform, assert_uniform

LEVEL = 1e-10
MEAN = np.array([0.5, -1.0])
COVARIANCE = np.array([[2.0, 0.9], [0.9, 1.0]])
ROOT = np.linalg.cholesky(COVARIANCE)
FREQUENCIES = fourier_frequencies(11, 2, 2.0, count=4)
EXACT = gaussian_moments(FREQUENCIES, MEAN, COVARIANCE)


def draw(rng, n):
    return MEAN + rng.normal(size=(n, 2)) @ ROOT.T


def test_moments_of_a_gaussian_are_those_of_quadrature():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / np.sum(weights)
    x = MEAN + np.stack([np.repeat(nodes, 60), np.tile(nodes, 60)], axis=1) @ ROOT.T
    w = np.outer(weights, weights).ravel()
    slow = FREQUENCIES[np.linalg.norm(FREQUENCIES @ ROOT, axis=1) < 2.5]  # those that 60 nodes resolve to round-off
    assert len(slow) >= 10
    phi = fourier_features(x, slow)
    mean, covariance = gaussian_moments(slow, MEAN, COVARIANCE)
    roundoff = 1000 * np.finfo(float).eps
    np.testing.assert_allclose(w @ phi, mean, rtol=0, atol=roundoff)
    np.testing.assert_allclose(
        (phi * w[:, None]).T @ phi - np.outer(w @ phi, w @ phi), covariance, rtol=0, atol=roundoff
    )


def test_features_have_the_kernel_of_all_bandwidths():
    frequencies = fourier_frequencies(1, 3, 1.5, count=4000)
    x = np.random.default_rng(2).normal(size=(6, 3))
    phi = fourier_features(x, frequencies)
    square = np.sum((x[:, None] - x[None]) ** 2, axis=2)
    kernel = np.mean([np.exp(-square / (2 * (f * 1.5) ** 2)) for f in FACTORS], axis=0)
    assert np.max(np.abs(phi @ phi.T - kernel)) <= 4.9 / math.sqrt(2 * 20_000)  # |cos| has variance <= 1/2
    np.testing.assert_allclose(np.sum(phi**2, axis=1), 1.0, rtol=1e-13)


def test_effect_is_the_unbiased_statistic():
    x = draw(np.random.default_rng(3), 50) + 0.8
    phi = fourier_features(x, FREQUENCIES) - EXACT[0]
    gram = phi @ phi.T
    u_statistic = (np.sum(gram) - np.trace(gram)) / (50 * 49)
    assert u_statistic > 0
    assert mmd_test(x, FREQUENCIES, EXACT[0]).effect ** 2 == pytest.approx(u_statistic, rel=1e-10)


@pytest.mark.parametrize("known", [True, False])
def test_p_values_are_uniform(known):
    rng = np.random.default_rng(4)
    covariance = EXACT[1] if known else None
    assert_uniform([mmd_test(draw(rng, 400), FREQUENCIES, EXACT[0], covariance).p for _ in range(2000)])


def test_two_sample_p_values_are_uniform():
    rng = np.random.default_rng(5)
    assert_uniform([mmd_two_sample_test(draw(rng, 250), draw(rng, 400), FREQUENCIES).p for _ in range(2000)])


def test_p_values_of_the_bound_are_super_uniform():
    rng = np.random.default_rng(6)
    assert_super_uniform([mmd_test(draw(rng, 20), FREQUENCIES, EXACT[0], bound=True).p for _ in range(500)])
    assert_super_uniform(
        [mmd_two_sample_test(draw(rng, 9), draw(rng, 20), FREQUENCIES, bound=True).p for _ in range(500)]
    )


@pytest.mark.parametrize("known", [True, False])
def test_tail_is_right_at_1e_minus_10(known):
    """N(0, 1) at n = 1e4, by importance sampling along both signs of the leading eigenvector of the features."""
    found = mmd_tail(known, 10_000, 200)
    z = stats.norm.isf(LEVEL / 2)
    next_order = math.expm1(z**4 / 10_000)  # the leading feature is odd: no skewness
    assert abs(found.estimate - LEVEL) <= 4.9 * found.error + next_order * LEVEL
    assert found.error < 0.25 * LEVEL  # the estimate has seen the tail


@pytest.mark.parametrize("case", ["correlation", "shift", "two samples", "allowance", "bound"])
def test_an_effect_is_detected_at_the_promised_rate(case):
    rng, n, power = np.random.default_rng(9), 3000, 0.9
    allowance = 0.05 if case == "allowance" else 0.0

    def test(x):
        if case == "two samples":
            return mmd_two_sample_test(x, draw(rng, n), FREQUENCIES)
        return mmd_test(x, FREQUENCIES, EXACT[0], EXACT[1], allowance=allowance, bound=case == "bound")

    promised = test(draw(rng, n)).detectable(LEVEL, power)

    def changed(size):
        covariance = COVARIANCE.copy()
        if case == "correlation":
            covariance[0, 1] = covariance[1, 0] = 0.9 - size
        return MEAN + (0.0 if case == "correlation" else size), covariance

    def distance(size):
        return float(np.linalg.norm(gaussian_moments(FREQUENCIES, *changed(size))[0] - EXACT[0]))

    low, high = 0.0, 2.3 if case == "correlation" else 4.0
    assert distance(high) > promised
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) < promised else (low, middle)
    mean, covariance = changed(high)
    root = np.linalg.cholesky(covariance)
    seen = sum(test(mean + rng.normal(size=(n, 2)) @ root.T).rejects(LEVEL) for _ in range(100))
    assert_rate_at_least(seen, 100, power)


def test_rejection_and_threshold_agree():
    rng = np.random.default_rng(10)
    for shift in np.linspace(0, 0.4, 12):
        for bound in (False, True):
            found = mmd_test(draw(rng, 2000) + shift, FREQUENCIES, EXACT[0], allowance=0.02, bound=bound)
            for alpha in (0.01, LEVEL):
                assert found.rejects(alpha) == (found.effect >= found.threshold(alpha))


def test_blocks_do_not_change_the_moments():
    x = draw(np.random.default_rng(11), 1000)
    features = lambda a: fourier_features(a, FREQUENCIES)
    for one, other in zip(moments_of(features, x, block=77), moments_of(features, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1000 * np.finfo(float).eps)


def test_median_distance_of_a_gaussian():
    found = median_distance(np.random.default_rng(12).normal(size=(5000, 1)))
    # |x - y| of the first thousand points: the median of |N(0, 2)|; their ecdf has an error below 4.9/(2 sqrt(1000))
    assert abs(special.erf(found / 2) - 0.5) <= 2 * 4.9 / (2 * math.sqrt(1000))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mmd_test(np.zeros((5, 3)), FREQUENCIES, EXACT[0]), "samples has 3 columns"),
        (lambda: mmd_test(np.zeros((5, 2)), FREQUENCIES, [0.0]), "expected_mean has shape"),
        (lambda: mmd_two_sample_test(np.zeros((5, 2)), np.zeros(5), FREQUENCIES), "reference has shape"),
        (lambda: mmd_test(np.full((5, 2), math.nan), FREQUENCIES, EXACT[0]), "not finite"),
        (lambda: fourier_frequencies(0, 2, -1.0), "bandwidth is -1"),
        (lambda: median_distance(np.zeros((5, 2))), "coincide"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
