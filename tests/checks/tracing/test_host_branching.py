"""Exact expectations over the draws of a NumPy generator. Oracles: moments of scipy.stats and of closed form."""

import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.core.check import Inconclusive, OutOfReach
from sgmcmc_verification.checks.tracing import host_branching
from sgmcmc_verification.checks.tracing.host_branching import (
    BranchingGenerator,
    ScriptedGenerator,
    Unintercepted,
    branches,
)
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import subject

EPS = np.finfo(np.float64).eps


def expectation(function, points=12):
    """E function over all branches, and the total weight."""
    pairs = list(branches(function, points))
    return sum(w * np.asarray(v) for w, v in pairs), sum(w for w, _ in pairs)


LAWS = {
    "normal": (lambda g: g.normal(0.3, 1.7), stats.norm(0.3, 1.7)),
    "standard_normal": (lambda g: g.standard_normal(), stats.norm()),
    "poisson, small": (lambda g: g.poisson(0.4), stats.poisson(0.4)),
    "poisson, large": (lambda g: g.poisson(6.5), stats.poisson(6.5)),
    "gamma": (lambda g: g.gamma(2.3, 0.7), stats.gamma(2.3, scale=0.7)),
    "gamma, shape below one": (lambda g: g.gamma(0.2, 2.0), stats.gamma(0.2, scale=2.0)),
    "standard_gamma": (lambda g: g.standard_gamma(1.0), stats.expon()),
    "integers": (lambda g: g.integers(2, 7), stats.randint(2, 7)),
    "coin": (lambda g: g.binomial(1, 0.3), stats.bernoulli(0.3)),
    "sure coin": (lambda g: g.binomial(1, 1.0), stats.bernoulli(1.0)),
    "binomial": (lambda g: g.binomial(5, 0.7), stats.binom(5, 0.7)),
    "integers from 0": (lambda g: g.integers(4), stats.randint(0, 4)),
}


@pytest.mark.parametrize("name", LAWS)
def test_moments_of_a_draw_are_those_of_its_law(name):
    draw, law = LAWS[name]
    found, total = expectation(lambda g: draw(g) ** np.arange(1, 5))
    assert total == pytest.approx(1.0, abs=100 * EPS)
    np.testing.assert_allclose(found, [law.moment(k) for k in range(1, 5)], rtol=1e4 * EPS, atol=100 * EPS)


def test_draws_whose_parameters_depend_on_earlier_draws_are_nested():
    """A gamma mixture of Poissons is negative binomial: E N = a s, Var N = a s (1 + s)."""
    a, s = 2.5, 0.6
    (mean, square), _ = expectation(lambda g: (n := float(g.poisson(g.gamma(a, s)))) * np.array([1.0, n]))
    assert mean == pytest.approx(a * s, rel=1e4 * EPS)
    assert square - mean**2 == pytest.approx(a * s * (1 + s), rel=1e4 * EPS)


def test_the_noncentral_chi_square_is_a_poisson_mixture_of_gammas():
    """chi'^2 with k degrees of freedom and parameter l: mean k + l, variance 2 k + 4 l (the exact CIR step)."""
    k, l = 0.8, 1.9
    found, _ = expectation(lambda g: (x := 2 * g.gamma(k / 2 + g.poisson(l / 2))) * np.array([1.0, x]))
    assert found[0] == pytest.approx(k + l, rel=1e4 * EPS)
    assert found[1] - found[0] ** 2 == pytest.approx(2 * k + 4 * l, rel=1e4 * EPS)


def test_arrays_are_independent_draws_in_order():
    covariance, _ = expectation(lambda g: np.outer(x := g.standard_normal((3,)), x), points=3)
    np.testing.assert_allclose(covariance, np.eye(3), atol=100 * EPS)
    means, _ = expectation(lambda g: g.normal([1.0, -2.0], [0.5, 3.0]), points=2)
    np.testing.assert_allclose(means, [1.0, -2.0], rtol=10 * EPS)
    shapes, _ = expectation(lambda g: g.gamma(np.array([0.5, 2.0])), points=3)
    np.testing.assert_allclose(shapes, [0.5, 2.0], rtol=100 * EPS)


def test_paths_of_different_lengths_are_all_walked_once():
    """A second draw only after an even first one."""

    def step(g):
        n = int(g.integers(3))
        return (n, int(g.integers(2))) if n % 2 == 0 else (n,)

    pairs = sorted((v, w) for w, v in branches(step, 4))
    assert [v for v, _ in pairs] == [(0, 0), (0, 1), (1,), (2, 0), (2, 1)]
    np.testing.assert_allclose([w for _, w in pairs], [1 / 6, 1 / 6, 1 / 3, 1 / 6, 1 / 6], rtol=4 * EPS)


def test_a_function_that_draws_nothing_has_one_path():
    assert list(branches(lambda g: 7, 4)) == [(1.0, 7)]


@pytest.mark.parametrize("law", ["exponential", "uniform", "random", "choice", "beta", "dirichlet", "permutation"])
@pytest.mark.parametrize("make", [lambda: BranchingGenerator([], 4), lambda: ScriptedGenerator(np.zeros(1))])
def test_a_law_without_a_rule_is_named(law, make):
    with pytest.raises(Unintercepted, match=law):
        getattr(make(), law)(1.0)


def test_too_many_paths_are_refused(monkeypatch):
    monkeypatch.setattr(host_branching, "MAX_PATHS", 20)
    with pytest.raises(ValueError, match="too often"):
        list(branches(lambda g: g.standard_normal((3,)), 3))


def test_exactly_as_many_paths_as_allowed_are_walked(monkeypatch):
    monkeypatch.setattr(host_branching, "MAX_PATHS", 27)
    assert len(list(branches(lambda g: g.standard_normal((3,)), 3))) == 27


def test_a_tree_of_which_few_paths_are_hardly_any_is_not_walked_to_the_end():
    """Thirty coins have a thousand million paths; three hundred of which the first one ends them have three hundred."""
    walked = []

    def until_one(g, coins):
        walked.append(1)
        return next((k for k in range(coins) if g.integers(2)), coins)

    with pytest.raises(ValueError, match="too often"):
        list(branches(lambda g: walked.append(1) or g.integers(2, size=30), 4))
    assert len(walked) == host_branching.LOOK
    assert len(list(branches(lambda g: until_one(g, 300), 4))) == 301
    # what is deep at first and ends soon later on is walked: 2^11 paths of 12 coins, half of which end at the first one
    assert len(list(branches(lambda g: g.integers(2, size=1 if g.integers(2) else 11), 4))) == 2**11 + 2


def test_the_scripted_generator_hands_out_its_values_in_order():
    generator = ScriptedGenerator(np.array([1.0, 2.0, 3.0, 4.0]))
    assert generator.standard_normal() == 1.0
    assert np.array_equal(generator.standard_normal((2,)), [2.0, 3.0])
    assert generator.normal(10.0, 2.0) == 18.0
    assert generator.used == 4
    assert generator.standard_normal((2,)).tolist() == [0.0, 0.0]
    assert generator.used == 6


def test_the_precision_that_the_code_asks_for_is_kept():
    assert ScriptedGenerator(np.ones(2)).standard_normal((2,), np.float32).dtype == np.float32
    assert BranchingGenerator([], 4).standard_normal((2,), np.float32).dtype == np.float32


@pytest.mark.parametrize(
    "draw", [lambda g: g.integers(2**31), lambda g: g.integers(0, 2**63), lambda g: g.binomial(10**9, 0.5)]
)
def test_a_draw_of_more_values_than_paths_are_walked_is_named_and_not_enumerated(draw):
    with pytest.raises(Unintercepted, match=r"Generator\.(integers|binomial)"):
        list(branches(draw, 4))


PASSING_ON = {
    "to SciPy": lambda rng, x: stats.norm.rvs(size=x.shape, random_state=rng),
    "as an index": lambda rng, x: np.ones(9)[rng.poisson(2.0, x.shape)],
}


@pytest.mark.parametrize("name", PASSING_ON)
def test_a_step_that_needs_a_generator_of_numpy_is_not_decided_by_a_stand_in(name):
    def step(rng, x, step_size, estimator):
        return np.asarray(x) + step_size * PASSING_ON[name](rng, np.asarray(x))

    line = target("gaussian-1d-scaled")
    mapped = step_map(subject(simple_sampler(step, backend="host"), line.name), line)
    with pytest.raises(Inconclusive, match="cannot feed"):
        mapped.moments(np.ones((1, 1)), 0.1)
    with pytest.raises(OutOfReach):
        mapped.affine(0.1)
