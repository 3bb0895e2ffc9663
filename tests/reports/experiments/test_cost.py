"""Experiments on what a bias is made of and what an accuracy costs: closed forms, published lines."""

import numpy as np
import pytest

from sgmcmc_verification.checks.core.lookup import resolve
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.reports.experiments.common.grid import PUBLISHED, load
from sgmcmc_verification.reports.experiments.original import cost_of_accuracy as cost
from sgmcmc_verification.reports.experiments.original import three_biases as biases
from sgmcmc_verification.targets.registry import target


def test_autocovariance_of_euler_on_a_line_is_the_closed_form():
    """x' = a x + noise: rho_k = a^k, so tau = 1 + 2 a^2 / (1 - a^2); C_0 = 1 / (1 - h k / 2) in units of the target."""
    law = target("gaussian-1d-scaled")
    k = float(law.gaussian.precision[0, 0])
    step = step_map(resolve("sgld")[0], law)
    for h in (0.05, 0.3):
        a = 1 - h * k
        ((variance, tau),) = cost.coordinates(step, h)
        assert variance == pytest.approx(1 / (1 - h * k / 2), rel=1e-10)
        assert tau == pytest.approx(1 + 2 * a * a / (1 - a * a), rel=1e-10)
    assert cost.coordinates(step, 2.1 / k) is None


def test_the_best_step_size_balances_bias_and_noise():
    result = {"step sizes": [0.1, 0.05], "coordinates": [[(1.05, 10.0)], [(1.02, 20.0)]]}
    found, h = cost.gradients(result, 0.1)
    assert (found, h) == (pytest.approx(2 * 10 * 1.05**2 / (0.01 - 0.0025)), 0.1)
    assert cost.gradients(result, 0.03)[1] == 0.05
    assert cost.gradients(result, 0.01) is None


def test_the_three_biases_add_up_and_only_the_planted_bug_has_the_third():
    lines = load(PUBLISHED / f"{biases.NAME}.jsonl")
    for name in biases.SAMPLERS:
        found = biases.parts(lines, name, False)
        assert set(found) == set(biases.BATCHES)
        implementation = found[1]["implementation"][0]
        assert (implementation > 0.5) == (name in biases.PLANTED), name
        if name not in biases.PLANTED:
            assert implementation < 1e-9
        assert np.all(found[5]["gradient noise"] == 0)
    # SGLD: variance 1 / (1 - h k / 2) of the target in each direction, k the eigenvalues of the precision
    largest = np.linalg.eigvalsh(target(biases.TARGET).gaussian.precision)[-1]
    sgld = biases.parts(lines, "sgld", False)[5]
    exact = 1 / (1 - sgld["h"] * largest / 2) - 1
    assert np.all(sgld["discretisation"] <= exact * (1 + 1e-6))
