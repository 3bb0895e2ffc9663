"""Kernel Stein discrepancy: its value by brute force and in closed form, its level, its power and its blind spot."""

import math
import tracemalloc

import numpy as np
import pytest
import sympy

from sgmcmc_verification.checks.statistics.ksd import ksd, stein_features, stein_test
from tests.helpers.statistics_tools import assert_rate_at_least, assert_uniform

LEVEL = 1e-10
LOCATIONS = np.random.default_rng(1).normal(size=(5, 2))
PRECISION = np.linalg.inv(np.array([[2.0, 0.9], [0.9, 1.0]]))
ROOT = np.linalg.cholesky(np.linalg.inv(PRECISION))


def score(x):
    return -x @ PRECISION


def draw(rng, n):
    return rng.normal(size=(n, 2)) @ ROOT.T


def test_ksd_is_the_mean_of_the_stein_kernel_by_symbolic_differentiation():
    offset, x = 0.7, draw(np.random.default_rng(2), 23)
    a, b, s, t = (sympy.symbols(f"{name}:2") for name in "abst")
    kernel = 1 / sympy.sqrt(sympy.Float(offset) ** 2 + sum((u - v) ** 2 for u, v in zip(a, b, strict=True)))
    stein = sum(
        s[i] * t[i] * kernel + s[i] * kernel.diff(b[i]) + t[i] * kernel.diff(a[i]) + kernel.diff(a[i], b[i])
        for i in (0, 1)
    )
    compiled = sympy.lambdify([*a, *b, *s, *t], stein)
    points = np.concatenate([x, score(x)], axis=1)
    first, second = points.T[:, :, None], points.T[:, None, :]
    gram = compiled(*first[:2], *second[:2], *first[2:], *second[2:])
    np.fill_diagonal(gram, 0.0)
    for block in (5, 23, 100):
        assert ksd(x, score(x), offset=offset, block=block) == pytest.approx(np.sum(gram) / (23 * 22), rel=1e-10)


def test_memory_is_that_of_a_tile():
    n = 4000
    x = draw(np.random.default_rng(3), n)
    tracemalloc.start()
    value = ksd(x, score(x), block=256)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n**2 / 10
    assert abs(value) < ksd(1.1 * x, score(1.1 * x))


def test_features_have_mean_zero_under_the_law():
    """By quadrature, and not under another law."""
    nodes, weights = np.polynomial.legendre.leggauss(300)
    x, w = 12 * nodes, 12 * weights
    grid = np.stack([np.repeat(x, 300), np.tile(x, 300)], axis=1)
    density = np.outer(w, w).ravel() * np.exp(-0.5 * np.einsum("ni,ij,nj->n", grid, PRECISION, grid))
    density /= np.sum(density)
    phi = stein_features(grid, score(grid), LOCATIONS, 1.0)
    assert np.max(np.abs(density @ phi)) < 1e4 * np.finfo(float).eps
    assert np.max(np.abs(density @ stein_features(grid, 1.1 * score(grid), LOCATIONS, 1.0))) > 1e-3


def test_p_values_are_uniform():
    rng = np.random.default_rng(4)
    p = []
    for _ in range(2000):
        x = draw(rng, 500)
        p.append(stein_test(x, score(x), LOCATIONS).p)
    assert_uniform(p)


@pytest.mark.parametrize("allowance", [0.0, 0.02])
def test_an_effect_is_detected_at_the_promised_rate(allowance):
    rng, n, power = np.random.default_rng(5), 10_000, 0.9
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    grid = np.stack([np.repeat(nodes, 80), np.tile(nodes, 80)], axis=1) @ ROOT.T
    w = np.outer(weights, weights).ravel() / np.sum(weights) ** 2
    shifted = lambda size, y: y + size * np.array([1.0, 0.5])
    distance = lambda size: float(np.linalg.norm(w @ _features(shifted(size, grid))))
    promised = _test(draw(rng, n), allowance).detectable(LEVEL, power)
    low, high = 0.0, 1.0
    assert distance(high) > promised
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if distance(middle) < promised else (low, middle)
    seen = sum(_test(shifted(high, draw(rng, n)), allowance).rejects(LEVEL) for _ in range(100))
    assert_rate_at_least(seen, 100, power)


def _features(x):
    return stein_features(x, score(x), LOCATIONS, 1.0)


def _test(x, allowance):
    return stein_test(x, score(x), LOCATIONS, allowance=allowance)


def test_the_weights_of_isolated_modes_are_not_seen():
    """The stated blind spot: one of two modes 16 standard deviations apart, against both."""
    x = np.random.default_rng(6).normal(size=(5000, 1)) + 8.0
    s = -x + 8 * np.tanh(8 * x)  # of (N(-8, 1) + N(8, 1))/2
    assert not stein_test(x, s, np.array([[-8.0], [0.0], [8.0], [9.0]])).rejects(1e-3)
    assert abs(ksd(x, s)) < 1e-2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ksd(np.zeros((5, 2)), np.zeros((4, 2))), "scores has shape"),
        (lambda: ksd(np.zeros((5, 2)), np.full((5, 2), math.nan)), "scores has 10 values"),
        (lambda: stein_test(np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((3, 1))), "locations has 1 columns"),
        (lambda: stein_test(np.zeros((5, 2)), np.zeros((5, 2)), LOCATIONS, offset=0.0), "offset is 0"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
