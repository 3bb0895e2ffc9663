"""The convergence tier: laws of the declared dynamics from any start, and verdicts on right and wrong samplers.

Oracles: the Ornstein-Uhlenbeck process in closed form, the spectral gap of a chain of two wells by another route.
"""

import numpy as np
import pytest
from scipy.special import ndtr

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian
from sgmcmc_verification.checks.exact_laws.null_law import null_law_from
from sgmcmc_verification.checks.exact_laws.sde_law import law_on_grid, linear_law
from sgmcmc_verification.checks.faults.registry import find_defect
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.convergence.convergence import start_at
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

LINE, WELLS = target("gaussian-1d-scaled"), target("double-well")
CURVATURE, MEAN = 2.5, 0.7
SEED = 7


def verdict(check, subject, name, fraction):
    with fraction_of_chains(fraction):
        return execute(find_statement(check), subject, name, SEED)


def ornstein_uhlenbeck(start, time):
    decay = np.exp(-CURVATURE * time)
    return MEAN + decay * (start - MEAN), (1 - decay**2) / CURVATURE


@pytest.mark.parametrize("time", [0.05, 1.0, 300.0])
def test_overdamped_law_is_that_of_the_ornstein_uhlenbeck_process(time):
    law = linear_law(SGLD().dynamics(LINE), Gaussian(np.array([5.0]), np.zeros((1, 1))), time)
    mean, variance = ornstein_uhlenbeck(5.0, time)
    assert law.mean[0] == pytest.approx(mean, rel=1e-11)
    assert law.covariance[0, 0] == pytest.approx(variance, rel=1e-11)


def test_underdamped_law_solves_its_moment_equations():
    """d m / dt = J m + b and d S / dt = J S + S J^T + 2 D, by differences of the law in time."""
    dynamics, start = langevin_dynamics(LINE, 1.3), Gaussian(np.array([3.0, -1.0]), np.diag([0.0, 1.0]))
    step, t = 1e-4, 0.8
    before, here, after = (linear_law(dynamics, start, t + k * step) for k in (-1, 0, 1))
    drift = np.array([[0.0, 1.0], [-CURVATURE, -1.3]])
    np.testing.assert_allclose(
        (after.mean - before.mean) / (2 * step), drift @ here.mean + [0, CURVATURE * MEAN], rtol=1e-6, atol=1e-7
    )
    slope = drift @ here.covariance + here.covariance @ drift.T + np.diag([0.0, 2.6])
    np.testing.assert_allclose((after.covariance - before.covariance) / (2 * step), slope, rtol=1e-6, atol=1e-7)


def test_the_law_on_a_grid_is_that_of_the_ornstein_uhlenbeck_process():
    axis = np.linspace(-3.5, 4.9, 400)
    start = np.exp(-((axis - 2.0) ** 2) / (2 * 0.1**2))
    law = law_on_grid(SGLD().dynamics(LINE), [axis], start / start.sum(), 0.3)
    mean, variance = ornstein_uhlenbeck(2.0, 0.3)
    spread = variance + 0.01 * np.exp(-2 * CURVATURE * 0.3)
    assert law @ axis == pytest.approx(mean, rel=1e-7)
    assert law @ (axis - mean) ** 2 == pytest.approx(spread, rel=1e-6)


def test_the_null_law_from_a_point_is_the_recursion_of_euler_by_hand():
    step, h, n = step_map(Subject(sampler_row("sgld")), LINE), 0.04, 30
    law = null_law_from(step, h, n, start_at(step, np.array([6.0])))
    mean, variance = 6.0, 0.0
    for _ in range(n):
        mean, variance = MEAN + (1 - h * CURVATURE) * (mean - MEAN), (1 - h * CURVATURE) ** 2 * variance + 2 * h
    root = np.sqrt(CURVATURE)
    assert law.expectations[0] == pytest.approx(root * (mean - MEAN), abs=1e-6)
    assert law.expectations[1] == pytest.approx(CURVATURE * (variance + (mean - MEAN) ** 2), rel=1e-6)
    cdf = law.cdf(np.ones(1))
    assert cdf is not None
    exact = ndtr((0.8 - mean) / np.sqrt(variance))
    assert cdf(np.array([root * (0.8 - MEAN)]))[0] == pytest.approx(exact, abs=1e-6)


def test_the_weight_of_a_well_from_the_grid_is_that_of_a_long_chain_of_small_steps():
    """Against plain Euler chains in NumPy at a step 8 times smaller."""
    step = step_map(Subject(sampler_row("sgld")), WELLS)
    h, n = 0.004, 200
    law = null_law_from(step, h, n, start_at(step, np.array([1.0]), 0.06))
    cdf = law.cdf(np.ones(1))
    assert cdf is not None
    weight = cdf(law.standardise(np.zeros((1, 1)))[:, 0])[0]
    generator, count, small = np.random.default_rng(1), 20_000, h / 8
    x = 1.0 + 0.06 * generator.standard_normal(count)
    for _ in range(8 * n):
        x += -small * (4 * x**3 - 4 * x) + np.sqrt(2 * small) * generator.standard_normal(count)
    error = np.sqrt(weight * (1 - weight) / count)
    assert abs(np.mean(x < 0) - weight) < 4.9 * error + 0.01  # 1e-6, and the bias of order h of the two schemes


@pytest.mark.parametrize(
    ("name", "check", "on", "fraction"),
    [
        ("sgld-half-gradient", "bad_start", "gaussian-correlated-2d", 0.05),
        ("sgld-half-speed", "separated_modes", "double-well", 0.05),
        ("sgld-half-gradient", "kernel_stein_discrepancy", "gaussian-correlated-2d", 0.1),
        ("sgld-noise-halved", "kernel_stein_discrepancy", "gaussian-correlated-2d", 0.1),
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


def test_an_exact_kernel_claims_no_speed():
    result = verdict("bad_start", Subject(sampler_row("hmc")), LINE.name, 0.01)
    assert result.verdict == "not-applicable"
    assert "how fast" in result.reason
