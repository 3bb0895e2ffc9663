"""Quadrature over noise, and extrapolation to h = 0 with an honest error."""

import itertools
import math

import numpy as np
import pytest

from sgmcmc_verification.checks.numerics.quadrature import MAX_NODES, gauss_hermite, neville, noise_rule, symmetric_rule

EPS = np.finfo(np.float64).eps


def normal_moment(degree):
    """E X^degree = (degree - 1)!! for even degrees, 0 for odd ones."""
    return 0.0 if degree % 2 else float(math.prod(range(degree - 1, 0, -2)))


@pytest.mark.parametrize("points", [1, 2, 4, 8, 12])
def test_one_dimensional_rule_is_exact_up_to_its_degree_and_not_beyond(points):
    nodes, weights = gauss_hermite(1, points)
    for degree in range(2 * points):
        scale = weights @ np.abs(nodes[:, 0]) ** degree
        assert weights @ nodes[:, 0] ** degree == pytest.approx(normal_moment(degree), abs=100 * EPS * scale)
    beyond = weights @ nodes[:, 0] ** (2 * points)
    # the defect of the Gauss rule is points! for the monic polynomial of degree 2 points
    assert normal_moment(2 * points) - beyond == pytest.approx(math.factorial(points), rel=1e-9)


def test_tensor_rule_is_exact_in_every_coordinate_at_once():
    nodes, weights = gauss_hermite(3, 4)
    assert nodes.shape == (64, 3)
    for a, b, c in [(0, 0, 0), (2, 4, 6), (6, 2, 2), (1, 2, 2), (3, 4, 2)]:
        value = weights @ (nodes[:, 0] ** a * nodes[:, 1] ** b * nodes[:, 2] ** c)
        expected = normal_moment(a) * normal_moment(b) * normal_moment(c)
        assert value == pytest.approx(expected, abs=1e3 * EPS * max(1.0, expected))


def test_no_noise_has_one_node_of_weight_one():
    nodes, weights = gauss_hermite(0, 5)
    assert (nodes.shape, weights.tolist()) == ((1, 0), [1.0])


def test_grids_beyond_the_limit_are_refused_with_their_size():
    dim = math.ceil(math.log(MAX_NODES, 4)) + 1
    with pytest.raises(ValueError, match=rf"4\^{dim}"):
        gauss_hermite(dim, 4)


@pytest.mark.parametrize(("dim", "points"), [(1, 12), (2, 12), (3, 12), (4, 7), (5, 4), (6, 4), (8, 4)])
def test_noise_rule_takes_as_many_points_as_stay_moderate_but_never_less_than_four(dim, points):
    assert noise_rule(dim)[0].shape == (points**dim, dim)


def test_noise_rule_is_symmetric_where_four_points_a_normal_are_too_many():
    nodes, weights = noise_rule(9)
    assert len(nodes) == len(weights) == 1 + 2 * 9 + 2 * 9 + 2 * 4 * 36 + 8 * 84
    assert len(noise_rule(37)[0]) <= MAX_NODES


def test_noise_rule_gives_up_when_that_is_too_large_as_well():
    with pytest.raises(ValueError, match="degree 7 in 38 dimensions is too large"):
        noise_rule(38)


def power(nodes, weights, direction, degree):
    """The rule for (direction . x)^degree, and a bound of its round-off."""
    terms = weights * (nodes @ direction) ** degree
    return terms.sum(), 50 * EPS * np.abs(terms).sum()


@pytest.mark.parametrize("degree", [5, 7])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 9, 15, 24])
def test_symmetric_rule_is_exact_for_all_polynomials_up_to_its_degree(dim, degree):
    """Powers of linear forms span all polynomials, and E (a . x)^k = |a|^k E X^k."""
    nodes, weights = symmetric_rule(dim, degree)
    assert nodes.shape == (len(weights), dim)
    for direction in np.random.default_rng(dim).standard_normal((12, dim)):
        direction /= np.linalg.norm(direction)
        for k in range(degree + 1):
            value, roundoff = power(nodes, weights, direction, k)
            assert abs(value - normal_moment(k)) <= roundoff, k


@pytest.mark.parametrize("degree", [5, 7])
@pytest.mark.parametrize("dim", [2, 9, 24])
def test_symmetric_rule_is_not_exact_beyond_its_degree(dim, degree):
    nodes, weights = symmetric_rule(dim, degree)
    direction = np.ones(dim) / np.sqrt(dim)
    value, roundoff = power(nodes, weights, direction, degree + 1)
    assert abs(value - normal_moment(degree + 1)) > 1e6 * roundoff


@pytest.mark.parametrize("degree", [5, 7])
def test_symmetric_rule_has_the_moments_of_single_coordinates(degree):
    """Products of powers of coordinates that are not neighbours, against products of their moments."""
    nodes, weights = symmetric_rule(6, degree)
    for exponents in itertools.product(range(degree + 1), repeat=3):
        if sum(exponents) <= degree:
            terms = weights * np.prod(nodes[:, [0, 3, 5]] ** exponents, axis=1)
            expected = math.prod(normal_moment(k) for k in exponents)
            assert abs(terms.sum() - expected) <= 50 * EPS * np.abs(terms).sum(), exponents


def test_symmetric_rule_is_unchanged_by_permutations_and_signs():
    nodes, weights = symmetric_rule(4, 7)
    table = {tuple(np.round(x, 9) + 0.0): w for x, w in zip(nodes, weights, strict=True)}
    assert len(table) == len(nodes)
    for x, w in list(table.items())[::7]:
        assert table[(-x[2], x[0], x[3], -x[1])] == w


@pytest.mark.parametrize(
    ("dim", "degree", "words"), [(5, 6, "must be 5 or 7"), (200, 5, "200 dimensions"), (60, 7, "60 dimensions")]
)
def test_rules_that_are_not_known_or_too_large_are_refused(dim, degree, words):
    with pytest.raises(ValueError, match=words):
        symmetric_rule(dim, degree)


SERIES = {
    "exponential": (np.exp, 1.0),
    "rational": (lambda h: 1 / (2 - h), 0.5),
    "a nearby pole": (lambda h: 1 / (1 - 3 * h), 1.0),
    "cotangent": (lambda h: h / np.tan(h), 1.0),
    "logarithm": (lambda h: np.log1p(2 * h) / h, 2.0),
    "large and small": (lambda h: 1e4 * np.cos(5 * h) - 1e4 + 1e-3, 1e-3),
    "square": (lambda h: 3 * h * h + 0.25, 0.25),
}


@pytest.mark.parametrize("levels", [4, 6, 8])
@pytest.mark.parametrize("name", SERIES)
def test_extrapolation_finds_the_limit_within_its_own_error_estimate(name, levels):
    function, limit = SERIES[name]
    h = 0.2 / 2.0 ** np.arange(levels)
    values = function(h)
    found, error = neville(h, values)
    assert abs(found - limit) <= 10 * error + 10 * EPS * np.abs(values).max()
    # and it is an extrapolation: better than the value at the smallest h
    assert abs(found - limit) < 0.1 * abs(values[-1] - limit)


def test_extrapolation_of_an_analytic_function_reaches_round_off():
    h = 0.2 / 2.0 ** np.arange(8)
    found, error = neville(h, np.exp(h))
    assert abs(found - 1) < 100 * EPS
    assert error < 1e3 * EPS


def test_extrapolation_owns_up_to_noise():
    h = 0.2 / 2.0 ** np.arange(8)
    values = np.exp(h) + 1e-6 * np.cos(np.arange(8) * 11.0)
    found, error = neville(h, values)
    assert abs(found - 1) <= 10 * error
    assert error > 1e-8


def test_a_half_power_of_h_is_not_taken_for_a_polynomial():
    h = 0.2 / 2.0 ** np.arange(8)
    found, error = neville(h, 1 + np.sqrt(h))
    assert abs(found - 1) <= 10 * error
    assert error > 1e-3


def test_entries_are_extrapolated_one_by_one():
    h = np.array([0.4, 0.2, 0.1, 0.05])
    # columns 1 + h, 2 - h^2, 3: polynomials of degree below 4 are extrapolated exactly
    values = np.stack([1 + h, 2 - h * h, np.full(4, 3.0)], axis=1)
    found, error = neville(h, values)
    np.testing.assert_allclose(found, [1, 2, 3], rtol=10 * EPS)
    assert found.shape == error.shape == (3,)
