"""The noise tier: exact laws with gradient noise, and verdicts on right and wrong samplers.

Oracles: recursions of the variance by hand, the published law of BAOAB with gradient noise, closed forms.
"""

import math

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.exact_laws.affine_chain import end_law, propagate
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian, gaussian_start
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tracing.estimator_memory import PointMemory
from sgmcmc_verification.checks.tracing.step_map import Affine, step_map
from sgmcmc_verification.samplers.estimators.basic import KnownNoise, Minibatch
from sgmcmc_verification.samplers.overdamped.saga import SAGA
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

LINE, DATA = target("gaussian-1d-scaled"), target("tiny-gaussian-data")
CURVATURE, NOISE = 2.5, 1.75
SEED = 7


def verdict(check, subject, name, fraction):
    with fraction_of_chains(fraction):
        return execute(find_statement(check), subject, name, SEED)


def test_variance_of_sgld_with_gradient_noise_follows_its_recursion():
    h = 0.04
    step = step_map(Subject(sampler_row("sgld")), LINE, KnownNoise(LINE, np.array([[NOISE]])))
    variance = 1 / CURVATURE
    for _ in range(20):
        variance = (1 - h * CURVATURE) ** 2 * variance + 2 * h + h**2 * NOISE
    law = end_law(step, h, 20, gaussian_start(step))
    assert law.covariance[0, 0] == pytest.approx(variance, rel=1e-13)
    assert law.mean[0] == pytest.approx(0.7, rel=1e-13)


def test_baoab_keeps_the_noise_of_its_gradient_across_steps():
    """lambda Var x / T = 1 + h^2 V coth(C h / 2) / (4 T (1 - h^2 lambda / 4)) for two kicks with one noise."""
    h = 0.1
    step = step_map(Subject(sampler_row("baoab")), LINE, KnownNoise(LINE, np.array([[NOISE]])))
    law = end_law(step, h, 4000, gaussian_start(step))
    exact = 1 + h**2 * NOISE / math.tanh(h / 2) / (4 * (1 - h**2 * CURVATURE / 4))
    assert CURVATURE * law.covariance[0, 0] == pytest.approx(exact, rel=1e-10)


def test_minibatches_add_the_covariance_of_their_gradient():
    """Without replacement, n of N: V = N^2 / n (1 - n / N) Cov(grad U_i) with the divisor N - 1."""
    assert DATA.gaussian is not None
    assert DATA.terms is not None
    h, precision = 0.01, DATA.gaussian.precision
    step = step_map(Subject(sampler_row("sgld")), DATA, Minibatch(DATA.terms, 2, replace=False))
    noise_precision = (precision - np.eye(2) / 4) / 5
    scores = np.asarray(DATA.terms.data) @ noise_precision
    added = 25 / 2 * (1 - 2 / 5) * np.cov(scores.T)
    covariance, flow = np.linalg.inv(precision), np.eye(2) - h * precision
    for _ in range(7):
        covariance = flow @ covariance @ flow.T + 2 * h * np.eye(2) + h**2 * added
    found = end_law(step, h, 7, gaussian_start(step)).covariance[:2, :2]
    np.testing.assert_allclose(found, covariance, rtol=1e-11)


def test_powers_of_one_map_are_its_repetition():
    generator = np.random.default_rng(3)
    one = Affine(0.4 * generator.standard_normal((3, 3)), generator.standard_normal((3, 2)), np.ones(3), 1.0)
    start = Gaussian(np.arange(3.0), np.eye(3))
    halves = [one._replace(weight=0.5)] * 2  # the same law, by the recursion of a mixture
    for times in (1, 2, 7):
        fast, slow = propagate([one], start, times), propagate(halves, start, times)
        np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-12)
        np.testing.assert_allclose(fast.covariance, slow.covariance, rtol=1e-12, atol=1e-13)


def test_a_table_of_gradients_and_a_table_of_points_give_one_law():
    assert DATA.terms is not None
    subject, h = Subject(sampler_row("saga-ld")), 0.03
    steps = [
        step_map(subject, DATA, e) for e in (SAGA(DATA.terms, 2, replace=False), PointMemory(DATA.terms, 2, table=True))
    ]
    laws = [end_law(step, h, 9, gaussian_start(step)) for step in steps]
    np.testing.assert_allclose(laws[0].covariance, laws[1].covariance, rtol=1e-10)
    exact = end_law(step_map(subject, DATA), h, 9, gaussian_start(steps[0]))
    # the noise is there: 1e-9 is far above the round-off of nine steps
    assert laws[0].covariance[0, 0] > (1 + 1e-9) * exact.covariance[0, 0]


@pytest.mark.parametrize(
    ("name", "check", "on", "fraction"),
    [
        ("sgld-gradient-ignored", "gradient_noise_end_points", "gaussian-correlated-2d", 0.01),
        ("sgld-compensation-sign", "gradient_noise_end_points", "gaussian-correlated-2d", 0.2),
        ("sgld-compensation-sign", "compensated_step", "gaussian-1d-scaled", 1.0),
        ("sgld-minibatch-not-rescaled", "minibatch_end_points", "tiny-gaussian-data", 0.01),
        ("sgld-target-over-data-size", "minibatch_end_points", "tiny-gaussian-data", 0.05),
    ],
)
def test_a_planted_bug_fails_and_its_reference_passes(name, check, on, fraction):
    """Further than the check that the bug names."""
    defect = find_defect(name)
    wrong = verdict(check, defect.subject, on, fraction)
    assert wrong.verdict == "fail", wrong.reason
    right = verdict(check, defect.base_subject, on, fraction)
    assert right.verdict == "pass", right.reason
    assert right.detectable is not None


def test_exact_kernels_and_estimators_without_memory_are_left_out():
    assert (
        verdict("gradient_noise_end_points", Subject(sampler_row("hmc")), LINE.name, 0.01).verdict == "not-applicable"
    )
    assert verdict("estimator_memory", Subject(sampler_row("sgld")), DATA.name, 0.01).verdict == "not-applicable"
    assert verdict("compensated_step", Subject(sampler_row("sgld")), LINE.name, 1.0).verdict == "not-applicable"
