"""Control variates, SVRG, and the laws of estimators with a memory.

Oracles: enumeration of all minibatches, gradients by hand, a recursion of the moments of position and anchor in NumPy.
"""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.exact_laws.affine_chain import end_law, propagate
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian, gaussian_start
from sgmcmc_verification.checks.exact_laws.lyapunov import periodic_law, position_law, stationary_law
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tracing.estimator_memory import BATCH, PointMemory
from sgmcmc_verification.checks.tracing.periodic_state import phases
from sgmcmc_verification.checks.tracing.step_map import Affine, step_map
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.overdamped.control_variates import SGLDCV, ControlVariates, full_control_variates
from sgmcmc_verification.samplers.overdamped.saga import SAGA, full_saga
from sgmcmc_verification.samplers.overdamped.svrg import SVRG, SVRGLD, full_svrg
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.euclidean.enumerable_data import (
    PRIOR_VARIANCE,
    REGRESSION_FEATURES,
    REGRESSION_NOISE_VARIANCE,
    REGRESSION_RESPONSES,
)
from sgmcmc_verification.targets.registry import target

EPS = float(np.finfo(np.float64).eps)
LOGISTIC, REGRESSION, MEAN = target("tiny-logistic"), target("tiny-regression"), target("tiny-gaussian-data")
H = 0.06
STEPS = 7


def logistic_gradients(x):
    """grad U_i of the tiny logistic regression, (N, 2), by hand."""
    assert LOGISTIC.terms is not None
    z, s = (np.asarray(a) for a in LOGISTIC.terms.data)
    return -(s / (1 + np.exp(s * (z @ x))))[:, None] * z


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("kind", ["centre", "snapshot"])
def test_a_corrected_gradient_is_unbiased_and_has_its_closed_form_of_the_covariance(kind, replace):
    terms, x, anchor = LOGISTIC.terms, np.array([0.7, -0.4]), np.array([-0.1, 0.5])
    assert terms is not None
    size, n = terms.size, 2
    estimator = ControlVariates(terms, n, anchor, replace) if kind == "centre" else SVRG(terms, n, 3, replace)
    estate = estimator.init(jax.random.key(0), jnp.asarray(anchor))
    at = lambda i: estimator.at(i, estate, jnp.asarray(x))
    read = lambda out: out.gradient if kind == "centre" else out[0].gradient
    gradients = jax.jit(jax.vmap(lambda i: read(at(i))))(jnp.asarray(Minibatch(terms, n, replace).indices()))
    change = logistic_gradients(x) - logistic_gradients(anchor)
    finite = 1.0 if replace else (size - n) / (size - 1)
    expected = finite * size**2 / n * np.cov(change.T, bias=True)
    np.testing.assert_allclose(gradients.mean(axis=0), jax.grad(LOGISTIC.potential)(jnp.asarray(x)), rtol=1e3 * EPS)
    np.testing.assert_allclose(np.cov(gradients.T, bias=True), expected, rtol=1e4 * EPS, atol=1e2 * EPS)
    plain = jax.vmap(lambda i: Minibatch(terms, n, replace).at(i, jnp.asarray(x)).gradient)(
        jnp.asarray(Minibatch(terms, n, replace).indices())
    )
    assert np.trace(expected) < 0.5 * np.trace(np.cov(plain.T, bias=True))  # the correction removes noise


def test_control_variates_have_no_noise_at_the_centre_nor_where_all_data_have_one_hessian():
    for law, x in ((LOGISTIC, None), (MEAN, jnp.array([2.0, -1.5]))):
        assert law.terms is not None
        estimator = ControlVariates(law.terms, 2, law.example)
        position = law.example if x is None else x
        estate = estimator.init(jax.random.key(0), position)
        batches = jnp.asarray(estimator.minibatch.indices())
        gradients = jax.vmap(estimator.at, (0, None, None))(batches, estate, position).gradient
        exact = jax.grad(law.potential)(position)
        np.testing.assert_allclose(gradients - exact, 0, atol=1e4 * EPS * float(jnp.abs(exact).max()))


def by_hand(kind: str, epoch: int) -> np.ndarray:
    """Covariance of x_n of SGLD with a corrected gradient on the regression, x_0 from the posterior.

    The joint moments of (1, x, anchor): the batch moves x linearly in them, and a renewed snapshot copies x.
    """
    gaussian = REGRESSION.gaussian
    assert gaussian is not None
    hessians = [np.outer(z, z) / REGRESSION_NOISE_VARIANCE for z in REGRESSION_FEATURES]
    pulls = REGRESSION_FEATURES * REGRESSION_RESPONSES[:, None] / REGRESSION_NOISE_VARIANCE
    total, size = sum(hessians), len(hessians)
    anchor = np.asarray(REGRESSION.example)
    covariance = np.linalg.inv(gaussian.precision)
    lift = np.vstack([[1.0, 0.0, 0.0], [gaussian.mean[0], 1, 0], [gaussian.mean[1], 0, 1]])
    start = lift @ np.diag([1.0, 0, 0]) @ lift.T
    start[1:, 1:] += covariance
    copy = np.zeros((5, 3))
    copy[:3] = np.eye(3)
    if kind == "snapshot":
        copy[3:, 1:] = np.eye(2)
    else:
        copy[3:, 0] = anchor
    second = copy @ start @ copy.T
    renew = np.eye(5)
    renew[3:] = 0
    renew[3:, 1:3] = np.eye(2)
    for step in range(STEPS):
        if kind == "snapshot" and step and step % epoch == 0:
            second = renew @ second @ renew.T
        new = np.zeros((5, 5))
        batches = list(itertools.combinations(range(size), BATCH))
        for batch in batches:
            drawn = size / BATCH * sum(hessians[i] for i in batch)
            move = np.eye(5)
            move[1:3, 1:3] -= H * (np.eye(2) / PRIOR_VARIANCE + drawn)
            move[1:3, 3:] -= H * (total - drawn)
            move[1:3, 0] += H * pulls.sum(axis=0)
            new += move @ second @ move.T / len(batches)
        new[1:3, 1:3] += 2 * H * np.eye(2)
        second = new
    return second[1:3, 1:3] - np.outer(second[1:3, 0], second[1:3, 0])


@pytest.mark.parametrize(("row", "kind"), [("sgld-cv", "centre"), ("svrg-ld", "snapshot")])
def test_chains_and_their_definition_have_the_moments_of_a_recursion_by_hand(row, kind):
    terms = REGRESSION.terms
    assert terms is not None
    if kind == "centre":
        own = ControlVariates(terms, BATCH, REGRESSION.example, replace=False)
        definition = PointMemory(terms, BATCH, centre=REGRESSION.example)
    else:
        own, definition = SVRG(terms, BATCH, 3, replace=False), PointMemory(terms, BATCH, period=3)
    expected = by_hand(kind, 3)
    for estimator in (own, definition):
        step = step_map(Subject(sampler_row(row)), REGRESSION, estimator)
        found = end_law(step, H, STEPS, gaussian_start(step)).covariance[:2, :2]
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_a_snapshot_is_the_position_at_the_start_of_its_epoch():
    assert LOGISTIC.terms is not None
    estimator, sampler = SVRG(LOGISTIC.terms, 2, 3), SVRGLD()
    state = sampler.init(jax.random.key(0), LOGISTIC.example, estimator)
    step, positions = jax.jit(lambda k, s: sampler.step(k, s, 0.05, estimator)), [LOGISTIC.example]
    for n, key in enumerate(jax.random.split(jax.random.key(1), 8)):
        state = step(key, state)
        begun = positions[3 * (n // 3)]
        assert np.array_equal(state.estate.position, begun)
        by_hand_total = logistic_gradients(np.asarray(begun)).sum(axis=0)
        np.testing.assert_allclose(state.estate.total, by_hand_total, rtol=1e3 * EPS, atol=1e2 * EPS)
        positions.append(state.position)


def test_the_law_of_a_cycle_of_maps_is_that_of_its_repetition():
    generator = np.random.default_rng(5)
    make = lambda weight: Affine(
        0.4 * generator.standard_normal((2, 2)), generator.standard_normal((2, 1)), generator.standard_normal(2), weight
    )
    one, two = [make(0.3), make(0.7)], [make(1.0)]
    alone, turning = stationary_law(one), periodic_law([one])
    np.testing.assert_allclose(turning.mean, alone.mean, rtol=1e-10)
    np.testing.assert_allclose(turning.covariance, alone.covariance, rtol=1e-10)
    law = Gaussian(np.zeros(2), np.eye(2))
    for _ in range(60):
        law = propagate(two, propagate(one, law))
    both = periodic_law([one, two])
    np.testing.assert_allclose(both.mean, law.mean, rtol=1e-9)
    np.testing.assert_allclose(both.covariance, law.covariance, rtol=1e-9)
    # a coordinate that is only copied has no law of its own
    assert np.isnan(periodic_law([[Affine(np.eye(1), np.eye(1), np.zeros(1), 1.0)]] * 2).mean).all()


def test_the_clock_of_a_snapshot_has_a_map_for_each_age_and_others_have_one():
    assert REGRESSION.terms is not None
    svrg = step_map(Subject(sampler_row("svrg-ld")), REGRESSION, SVRG(REGRESSION.terms, 2, 3, replace=False))
    assert [int(p.template.state.estate.age) for p in phases(svrg)] == [3, 1, 2]
    (plain,) = phases(step_map(Subject(sampler_row("sgld")), REGRESSION))
    # noise of minibatches grows with the age of the snapshot: fresh, the map is that of all data
    fresh = phases(svrg)[0].affine(H)
    assert np.allclose([m.matrix[:2, :2] for m in fresh], fresh[0].matrix[:2, :2], atol=1e-12)
    full = position_law(plain, H)[1]
    assert np.trace(position_law(svrg, H)[1]) > np.trace(full) * (1 + 1e-6)


def test_a_table_of_batches_with_replacement_is_not_that_of_subsets():
    """Unbiased as well, so that the law has the same limit; the variance of the estimates is larger."""

    class WithReplacement(SAGA):
        @property
        def minibatch(self):
            return Minibatch(self.terms, self.batch_size, replace=True)

    def estimator(law):
        right = full_saga(law)
        return WithReplacement(right.terms, right.batch_size, replace=False)

    row = dataclasses.replace(sampler_row("saga-ld"), estimator=estimator)
    result = execute(find_statement("estimator_recursion"), Subject(row), "tiny-gaussian-data", 0)
    assert result.verdict == "fail", result.reason


def test_estimators_without_memory_have_no_recursion_to_compare():
    result = execute(find_statement("estimator_recursion"), Subject(sampler_row("sgld")), "tiny-gaussian-data", 0)
    assert result.verdict == "not-applicable"


def test_bad_arguments_are_refused():
    terms = REGRESSION.terms
    assert terms is not None
    with pytest.raises(ValueError, match="epoch_length"):
        SVRG(terms, 2, 0)
    for bad in (lambda: SVRG(terms, 9, 2), lambda: ControlVariates(terms, 0, REGRESSION.example)):
        with pytest.raises(ValueError, match="batch_size"):
            bad()
    for sampler in (SGLDCV, SVRGLD):
        with pytest.raises(ValueError, match="compensate"):
            sampler(compensate=True)
    for full in (full_svrg, full_control_variates):
        with pytest.raises(ValueError, match="not a sum over data"):
            full(target("anharmonic"))
