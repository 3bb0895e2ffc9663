"""The geometry tier: right samplers pass, wrong ones fail (planted bugs: test_faults.py), others are told why."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.end_points.error_rates import fraction_of_chains
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import at_temperature, position_rule
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.geometry.manifold_law import stein_features, stein_operator
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.directional.von_mises_fisher import von_mises_fisher
from sgmcmc_verification.targets.registry import target

pytestmark = pytest.mark.xdist_group("geometry")

SEED = 11
SUBJECT = Subject(sampler_row("sggmc"))
"""One for all tests: what is traced and computed for a subject is found again by the next check of it."""
OTHER = von_mises_fisher(concentration=4.0)
TOO_NARROW = Subject(
    dataclasses.replace(sampler_row("sggmc"), name="too-narrow", estimator=lambda target: Exact(OTHER))
)
NOISE_FREE = ("stays_on_the_manifold", "geodesic_flow", "noise_is_tangent")


def verdict(check, subject, name, fraction=0.02):
    with fraction_of_chains(fraction):
        return execute(find_statement(check), subject, name, SEED)


@pytest.mark.parametrize("check", [*NOISE_FREE, "manifold_limit"])
def test_a_right_sampler_passes_without_noise(check):
    result = verdict(check, SUBJECT, "vmf-s2")
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize("check", ["closed_form_marginals", "intrinsic_dimension", "riemannian_stein_discrepancy"])
def test_a_right_sampler_passes_with_chains(check):
    result = verdict(check, SUBJECT, "vmf-s2")
    assert result.verdict == "pass", result.reason
    assert result.detectable is not None


@pytest.mark.parametrize("check", ["manifold_limit", "closed_form_marginals", "riemannian_stein_discrepancy"])
def test_a_right_step_on_another_law_fails(check):
    """The gradient is that of the concentration 4, the target has 3."""
    result = verdict(check, TOO_NARROW, "vmf-s2")
    assert result.verdict == "fail", result.reason


def test_the_stein_operator_has_mean_zero_under_the_target():
    """By quadrature on the sphere, at three locations, and not under another law."""
    law, other = target("vmf-s2"), target("uniform-s2")
    assert law.quadrature is not None
    assert other.quadrature is not None
    points, weights = law.quadrature(40)
    features = stein_features(law, 1.0)(points)
    np.testing.assert_allclose(weights @ features, 0, atol=1e-12)
    uniform, w = other.quadrature(40)
    assert np.abs(w @ stein_features(law, 1.0)(uniform)).max() > 0.05


def test_the_stein_operator_of_the_uniform_law_is_the_laplacian_of_the_sphere():
    """In polar coordinates about the location: f'' + cot(a) f' for f(a) = (3 - 2 cos a)^(-1/2)."""
    operator = stein_operator(target("uniform-s2"), 1.0)
    for angle in (0.4, 1.3, 2.9):
        x = jnp.array([np.sin(angle), 0.0, np.cos(angle)])
        f = lambda a: (3 - 2 * jnp.cos(a)) ** -0.5
        expected = jax.grad(jax.grad(f))(angle) + jax.grad(f)(angle) / np.tan(angle)
        assert float(operator(x, jnp.array([0.0, 0.0, 1.0]))) == pytest.approx(float(expected), rel=1e-12)


def test_flat_samplers_are_told_why_it_does_not_apply():
    for check in NOISE_FREE:
        result = verdict(check, Subject(sampler_row("sgld")), "double-well")
        assert result.verdict == "not-applicable"
        assert "flat" in result.reason or result.reason == "claims no FollowsGeodesics"


def test_exact_draws_on_the_positive_numbers_have_the_law_of_the_levels():
    """scir is exact: a Kolmogorov-Smirnov test of its own end points, without the code of the check."""
    result = verdict("closed_form_marginals", Subject(sampler_row("scir")), "gamma", 0.02)
    assert result.verdict == "pass", result.reason
    assert result.effect is not None
    assert stats.kstwo.sf(result.effect, result.n) > 1e-9


def test_a_law_that_cannot_be_normalised_at_a_temperature_is_left_out():
    with pytest.raises(OutOfReach, match="cannot be normalised"):
        at_temperature(target("dirichlet-sphere-sparse"), 0.5)


def test_the_rule_at_another_temperature_is_that_of_the_tempered_law():
    """Dirichlet(8, 12, 9) at T = 1/2 is Dirichlet(15, 23, 17); nodes of the law at T = 1 reweighted miss it by 6%."""
    points, weights = position_rule(target("dirichlet-concentrated"), 0.5)
    np.testing.assert_allclose(weights @ points, np.array([15, 23, 17]) / 55, rtol=1e-12)
    second = np.array([15 * 16, 23 * 24, 17 * 18]) / (55 * 56)
    np.testing.assert_allclose(weights @ points**2, second, rtol=1e-12)
