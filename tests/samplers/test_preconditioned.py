"""pSGLD and stochastic gradient Fisher scoring.

Oracles: discrete Lyapunov equations of matrices written by hand, quadrature of the laws that theory gives, recursions
in NumPy.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, linalg

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.exact_laws.lyapunov import position_law
from sgmcmc_verification.checks.exact_laws.transfer_operator import GRIDS, discrete_law
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.numerics.quadrature import neville
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.estimators.basic import Exact, KnownNoise, Minibatch
from sgmcmc_verification.samplers.interface.claims import AdaptiveLaw, Diffusion, StationaryLaw, StationaryMoments
from sgmcmc_verification.samplers.overdamped.psgld import PSGLD, RMSpropMetric
from sgmcmc_verification.samplers.overdamped.sgfs import SGFS
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target
from tests.helpers.step_algebra import step_mean_and_covariance

EPS = float(np.finfo(np.float64).eps)
PLANE, LINE, QUARTIC, DATA = (
    target(name) for name in ("gaussian-correlated-2d", "gaussian-1d-scaled", "anharmonic", "tiny-gaussian-data")
)
assert PLANE.gaussian is not None
P, MEAN = PLANE.gaussian.precision, PLANE.gaussian.mean
T = 1.7


def stationary(move, noise):
    """The solution of S = (I - M P) S (I - M P)^T + noise."""
    flow = np.eye(2) - move @ P
    return linalg.solve_discrete_lyapunov(flow, noise)


# pSGLD


@pytest.mark.parametrize("h", [0.01, 0.07])
def test_the_law_of_a_constant_preconditioner_is_that_of_its_recursion(h):
    moments, regularisation = np.array([0.5, 3.0]), 0.3
    row = dataclasses.replace(
        sampler_row("psgld-frozen"), build=lambda law: PSGLD(1.0, regularisation, moments, 1, T), variants=()
    )
    mean, covariance, _ = position_law(step_map(Subject(row), PLANE), h)
    G = np.diag(1 / (regularisation + np.sqrt(moments)))
    np.testing.assert_allclose(covariance, stationary(h * G, 2 * h * T * G), rtol=1e-10)
    np.testing.assert_allclose(mean, MEAN, rtol=1e-10)


def test_v_is_the_running_mean_of_squared_gradients_and_its_newest_value_preconditions():
    decay, regularisation, size, h = 0.8, 0.1, 4, 0.05
    sampler, estimator = PSGLD(decay, regularisation, 0.25, size, T), Exact(PLANE)
    state = sampler.init(jax.random.key(0), jnp.array([0.4, -1.0]), estimator)
    expected = np.full(2, 0.25)
    for key in jax.random.split(jax.random.key(1), 4):
        gradient = P @ (np.asarray(state.position) - MEAN)
        expected = decay * expected + (1 - decay) * (gradient / size) ** 2
        state = sampler.step(key, state, h, estimator)
        np.testing.assert_allclose(state.second_moment, expected, rtol=1e3 * EPS)
    # the first step, from V = 0.25: mean and covariance
    x = np.array([0.4, -1.0])
    gradient = P @ (x - MEAN)
    G = 1 / (regularisation + np.sqrt(decay * 0.25 + (1 - decay) * (gradient / size) ** 2))
    mean, covariance = step_mean_and_covariance(sampler, estimator, jnp.asarray(x), h)
    np.testing.assert_allclose(mean, x - h * G * gradient, rtol=1e3 * EPS)
    np.testing.assert_allclose(covariance, np.diag(2 * h * T * G), rtol=1e3 * EPS, atol=1e2 * EPS)


def slope(x):
    """U' of the anharmonic oscillator U = x^4 / 4 + x^2 / 2."""
    return x**3 + x


def mean_square(tilt) -> float:
    """E x^2 under exp(-U) tilt(x)."""
    density = lambda x: np.exp(-(x**4) / 4 - x**2 / 2) * tilt(x)
    over = lambda f: 2 * integrate.quad(lambda x: f(x) * density(x), 0, 8, epsabs=1e-13, limit=400)[0]
    return over(lambda x: x**2) / over(lambda x: 1.0)


def root(x, decay, past=1.0, regularisation=0.2):
    """1 / G of a step whose former V is `past`."""
    return regularisation + np.sqrt(decay * past + (1 - decay) * slope(x) ** 2)


@pytest.mark.parametrize("gamma", [True, False])
def test_without_gamma_the_law_is_that_of_theory_and_with_it_the_target(gamma):
    """alpha = 0.8, lambda = 0.2, V the curvature. As h -> 0 the law is exp(-U) / G without Gamma, exp(-U) with it."""
    subject = Subject(sampler_row("psgld-gamma")) if gamma else find_defect("psgld-without-gamma").subject
    step, hs = step_map(subject, QUARTIC), 0.1 / QUARTIC.curvature / 2.0 ** np.arange(4)
    assert isinstance(step, JaxStep)
    found = np.array([discrete_law(step, h, 1.0, GRIDS[1][1]).expectations[1] for h in hs])
    grid = abs(found[-1] - discrete_law(step, hs[-1], 1.0, GRIDS[1][0]).expectations[1])
    limit, error = neville(hs, found[:, None])
    right, wrong = mean_square(lambda x: 1.0), mean_square(lambda x: root(x, 0.8, QUARTIC.curvature))
    allowed = 10 * (float(error[0]) + grid)
    expected, other = (right, wrong) if gamma else (wrong, right)
    assert abs(float(limit[0]) - expected) <= allowed
    assert abs(float(limit[0]) - other) > 20 * allowed


def test_the_bias_without_gamma_is_of_order_one_minus_alpha_when_v_comes_from_elsewhere():
    """d/d alpha of E x^2 under exp(-U) (lambda + sqrt V'): Cov(x^2, (g^2 - V) / (2 sqrt V (lambda + sqrt V)))."""
    gaps = 1e-2 / 2.0 ** np.arange(5)
    exact = mean_square(lambda x: 1.0)
    ratios = np.array([(mean_square(lambda x, a=1 - e: root(x, a)) - exact) / e for e in gaps])
    density = lambda x: np.exp(-(x**4) / 4 - x**2 / 2)
    over = lambda f: 2 * integrate.quad(lambda x: f(x) * density(x), 0, 8, epsabs=1e-13, limit=400)[0]
    tilt = lambda x: (slope(x) ** 2 - 1) / (2 * (0.2 + 1))
    norm = over(lambda x: 1.0)
    covariance = over(lambda x: x**2 * tilt(x)) / norm - exact * over(tilt) / norm
    limit, error = neville(gaps, ratios[:, None])
    assert covariance > 0.1
    assert float(limit[0]) == pytest.approx(covariance, abs=10 * float(error[0]) + 1e-9)


def test_a_running_v_has_the_law_of_its_newest_gradient_at_a_small_step_and_the_target_with_a_long_memory():
    """alpha = 0.8 averages over a time h / (1 - alpha) = 0.02, alpha = 0.9999 over 40 times the length of the run."""
    count, h, regularisation = 6000, 0.004, 0.2
    exact, wrong = mean_square(lambda x: 1.0), mean_square(lambda x: regularisation + np.abs(slope(x)))
    assert QUARTIC.sample is not None
    estimator, start = Exact(QUARTIC), QUARTIC.sample(jax.random.key(3), count)

    def ends(sampler, steps):
        def chain(key, x):
            state = sampler.init(key, x, estimator)
            move = lambda s, k: (sampler.step(k, s, h, estimator), None)
            return jax.lax.scan(move, state, jax.random.split(key, steps))[0].position[0]

        return np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(4), count), start))

    mean_of_squares = integrate.quad(lambda x: slope(x) ** 2 * np.exp(-(x**4) / 4 - x**2 / 2), -8, 8)[0]
    mean_of_squares /= integrate.quad(lambda x: np.exp(-(x**4) / 4 - x**2 / 2), -8, 8)[0]
    for decay, past, law, other in ((0.8, 1.0, wrong, exact), (0.9999, mean_of_squares, exact, wrong)):
        squares = ends(PSGLD(decay, regularisation, past), 400) ** 2
        found, error = squares.mean(), squares.std() / np.sqrt(count)
        # nearer to one law than to the other, by more than chance (2e-9) can make it
        assert abs(found - law) + 6 * error < abs(found - other), decay


def test_a_running_v_claims_no_law():
    claims = PSGLD().claims
    assert AdaptiveLaw in claims
    assert Diffusion not in claims
    assert StationaryMoments not in claims
    assert StationaryLaw in PSGLD(decay=1.0).claims


def test_the_metric_is_the_preconditioner_of_one_step():
    metric = RMSpropMetric(PLANE, 0.8, 0.1, 0.25, 4)
    x, h = jnp.array([0.4, -1.0]), 0.03
    covariance = step_mean_and_covariance(PSGLD(0.8, 0.1, 0.25, 4), Exact(PLANE), x, h)[1]
    np.testing.assert_allclose(2 * h * metric.inverse(x), covariance, rtol=1e3 * EPS, atol=1e2 * EPS)
    root = metric.inverse_sqrt(x)
    np.testing.assert_allclose(root @ root, metric.inverse(x), rtol=1e2 * EPS)


# SGFS


def scoring(diagonal=False):
    """The sampler of a row and its matrix B."""
    sampler: Any = sampler_row("sgfs-diagonal" if diagonal else "sgfs").build(PLANE)
    return sampler, np.asarray(sampler.preconditioner)


@pytest.mark.parametrize("h", [0.005, 0.05, 0.4])
def test_fisher_scoring_has_the_law_of_the_target_at_every_step_size(h):
    mean, covariance, _ = position_law(step_map(Subject(sampler_row("sgfs")), PLANE), h)
    np.testing.assert_allclose(covariance, np.linalg.inv(P), rtol=1e-9)
    np.testing.assert_allclose(mean, MEAN, rtol=1e-9)


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_law_of_fisher_scoring_with_any_gradient_noise_is_that_of_its_recursion(diagonal):
    h, fraction = 0.04, 0.25
    sampler, B = scoring(diagonal)
    V = np.array([[3.0, -0.7], [-0.7, 1.1]]) * PLANE.curvature
    F = (1 + fraction) * V
    if diagonal:
        F, B = np.diag(np.diag(F)), np.diag(np.diag(B))
    M = np.linalg.inv(B / h + F / 2)
    expected = stationary(M, M @ (V + 2 * B / h) @ M)
    row = dataclasses.replace(sampler_row("sgfs"), build=lambda law: sampler)
    found = position_law(step_map(Subject(row), PLANE, KnownNoise(PLANE, V)), h)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert np.abs(found @ P - np.eye(2)).max() > 1e-3  # another noise, another law


def test_fisher_scoring_averages_the_covariances_of_its_minibatches():
    assert DATA.terms is not None
    estimator, sampler = Minibatch(DATA.terms, 3, fisher=True), SGFS(3 / 5, 2.0)
    state, seen = sampler.init(jax.random.key(0), DATA.example, estimator), []
    step = jax.jit(lambda k, s: sampler.step(k, s, 0.01, estimator))
    for key in jax.random.split(jax.random.key(1), 5):
        gradient_key = jax.random.split(key)[0]
        seen.append(np.asarray(estimator.estimate(gradient_key, (), state.position)[0].covariance))
        state = step(key, state)
        np.testing.assert_allclose(state.covariance, np.mean(seen, axis=0), rtol=1e4 * EPS, atol=1e3 * EPS)
    assert np.ptp(seen, axis=0).max() > 0.1
    assert int(state.count) == 5


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PSGLD(decay=1.2), "decay"),
        (lambda: PSGLD(regularisation=0.0), "regularisation"),
        (lambda: PSGLD(second_moment=np.array([1.0, -1.0])), "second_moment"),
        (lambda: PSGLD(data_size=0), "data_size"),
        (lambda: PSGLD(temperature=-1.0), "temperature"),
        (lambda: RMSpropMetric(LINE, decay=-0.1), "decay"),
        (lambda: SGFS(0.0), "batch_fraction"),
        (lambda: SGFS(0.5, np.array([[1.0, 2.0], [2.0, 1.0]])), "preconditioner"),
        (lambda: SGFS(0.5, np.array([[1.0, 0.5], [0.0, 1.0]])), "preconditioner"),
    ],
)
def test_bad_arguments_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# The check of a preconditioner by its definition


class Swapped(PSGLD):
    """V' = (1 - alpha) V + alpha g^2."""

    def updated(self, second_moment, gradient):
        return (1 - self.decay) * second_moment + self.decay * (gradient / self.data_size) ** 2


class RootForgotten(PSGLD):
    """G = 1 / (lambda + V)."""

    def preconditioner(self, second_moment):
        return 1 / (self.regularisation + second_moment)


@pytest.mark.parametrize(("method", "verdict"), [(PSGLD, "pass"), (Swapped, "fail"), (RootForgotten, "fail")])
def test_an_adaptive_preconditioner_is_held_to_its_algorithm(method, verdict):
    row = dataclasses.replace(
        sampler_row("psgld-frozen"), build=lambda law: method(0.7, 0.3, np.array([0.5, 2.0]), 4, T), variants=()
    )
    result = execute(find_statement("preconditioner_by_definition"), Subject(row), PLANE.name, 0)
    assert result.verdict == verdict, result.reason


def test_a_sampler_that_averages_nothing_has_no_preconditioner_to_compare():
    check, subject = find_statement("preconditioner_by_definition"), Subject(sampler_row("sgld"))
    assert check.applies_to(subject) == ()
    assert execute(check, subject, PLANE.name, 0).verdict == "not-applicable"
