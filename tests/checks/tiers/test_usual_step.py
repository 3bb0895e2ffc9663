"""What a sampler errs by at its usual step size, beside the reference of its dynamics."""

import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.conclusion import USUAL, Judged, conclude
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.law import gaussian_limit
from sgmcmc_verification.checks.tiers.law.usual_step import at_usual_step, error_of_variance
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.underdamped.sghmc import SGHMC
from sgmcmc_verification.targets.registry import target as find_target


def usual(name, target):
    return execute(gaussian_limit, Subject(sampler_row(name)), target, 0).detail[USUAL]


def test_the_error_of_sgld_is_its_closed_form_at_the_largest_curvature():
    found = usual("sgld", "gaussian-anisotropic")
    product = found["step_size"] * 100
    assert found["error"] == pytest.approx(product / 2 / (1 - product / 2), rel=1e-6)
    assert found["reference"] == "sgld"
    assert found["reference_error"] == pytest.approx(found["error"], rel=1e-6)


def test_a_scheme_without_bias_on_gaussians_errs_by_nothing():
    found = usual("baoab", "gaussian-anisotropic")
    assert "errs by nothing; that of sghmc-symmetric would by" in found["text"]


def test_the_error_is_that_of_the_worst_direction():
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert error_of_variance(turn @ np.diag([0.1, -0.3]) @ turn.T) == pytest.approx(-0.3)


def test_a_reference_at_the_border_of_stability_is_unstable():
    found = at_usual_step(np.diag(np.full(10, 0.1)), 0.02, find_target("gaussian-anisotropic"), 1)
    assert found["reference_error"] == np.inf
    assert "errs by 10%; that of sgld would by any amount (unstable)" in found["text"]


def test_a_law_that_is_right_as_h_vanishes_and_useless_at_its_step_size_says_so():
    row = sampler_row("sghmc-explicit")
    found = [execute(gaussian_limit, Subject(row), name, 0) for name in ("gaussian-1d-scaled", "gaussian-anisotropic")]
    concluded = conclude(row.name, [Judged(result, result.verdict) for result in found])
    assert [result.verdict for result in found] == ["pass", "pass"]
    h = row.step_size / 100**row.step_power
    moments = SGHMC(scheme="explicit").discrete_law
    wrong = max((k * moments(h, k)["position"] - 1 for k in np.logspace(0, 2, 10)), key=abs)
    assert wrong > 0.5
    assert concluded.bias.startswith(f"at the usual step size {h:.3g} a variance on gaussian-anisotropic errs by")
    assert f" {100 * wrong:.0f}%; that of sghmc-symmetric would by " in concluded.bias
