"""What the rows of the registry claim is consistent with itself.

Oracles: integration by parts under exp(-H); adaptive quadrature; the keys of the bibliography.
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, OutOfReach
from sgmcmc_verification.checks.exact_laws.claimed_law_quadrature import generic_points, law_rule, position_rule
from sgmcmc_verification.checks.tiers.law.gaussian import stationary_covariance
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.samplers.entry import STATISTICAL_TIERS, TIERS
from sgmcmc_verification.samplers.interface.claims import (
    Diffusion,
    EmbeddedDiffusion,
    ExactLaw,
    StationaryLaw,
    StationaryMoments,
    claim_types,
)
from sgmcmc_verification.samplers.registry import SAMPLERS, sampler_row
from sgmcmc_verification.targets.registry import target

COVARIANCE = stationary_covariance
ROOT = Path(__file__).resolve().parents[3]
KEYS = set(re.findall(r"^@\w+\{([^,]+),", (ROOT / "references.bib").read_text(), re.MULTILINE))


def on(row):
    """The smallest target of the row with which its full variable has few coordinates."""
    return target("anharmonic" if "anharmonic" in row.targets else row.targets[0])


def claims_of(row, options=None):
    return Subject(row, options or {}).sampler(on(row)).claims


WITH_DYNAMICS = [row for row in SAMPLERS if Diffusion in claims_of(row)]
WITH_LAW = [row for row in SAMPLERS if StationaryMoments in claims_of(row) and "gaussian-1d-scaled" in row.targets]


@pytest.mark.parametrize("row", SAMPLERS, ids=lambda row: row.name)
def test_every_row_says_where_its_method_comes_from(row):
    claims = claims_of(row)
    assert claims.source.key in KEYS
    assert claims.source.where
    assert type(claims.law) in claim_types()


@pytest.mark.parametrize("row", SAMPLERS, ids=lambda row: row.name)
def test_every_tier_is_covered_or_its_absence_is_explained(row):
    for tier in set(TIERS) - set(STATISTICAL_TIERS):
        assert tier in row.tiers or row.unsupported.get(tier)
    assert set(row.unsupported) <= set(TIERS)


@pytest.mark.parametrize("row", SAMPLERS, ids=lambda row: row.name)
def test_orders_are_claimed_where_they_mean_something(row):
    claims = claims_of(row)
    if claims.weak_order is not None:
        assert StationaryLaw in claims
        assert Diffusion in claims or EmbeddedDiffusion in claims
        # an expansion of order p is invariant to order p
        assert claims.invariant_order is not None
        assert claims.invariant_order >= claims.weak_order
    if ExactLaw in claims:
        assert claims.invariant_order is None


@pytest.mark.parametrize("row", SAMPLERS, ids=lambda row: row.name)
def test_the_temperature_of_the_options_is_the_temperature_of_the_claims(row):
    for options in ({}, *row.variants):
        assert claims_of(row, options).temperature == options.get("temperature", 1.0)


@pytest.mark.parametrize("row", WITH_DYNAMICS, ids=lambda row: row.name)
def test_the_rule_of_the_claimed_law_integrates_by_parts(row):
    """E[z_j d_i H] = delta_ij under exp(-H), for every pair of coordinates: mean and spread of the auxiliaries."""
    options = row.variants[0] if row.variants else {}
    step = step_map(Subject(row, options), on(row))
    claims = step.sampler.claims
    assert Diffusion in claims
    points, weights = law_rule(step, claims, refine=3)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(claims[Diffusion].dynamics(step.target).H)))(jnp.asarray(points)))
    n = points.shape[1]
    np.testing.assert_allclose((weights[:, None] * slopes).T @ points, np.eye(n), rtol=0, atol=1e-8)
    # E d_i H = 0; the few nodes for a host sampler are those of polynomials, which 1 / theta is none of
    if step.sampler.backend == "host" and step.target.manifold.is_positive:
        return
    np.testing.assert_allclose(weights @ slopes, 0, rtol=0, atol=1e-8)


@pytest.mark.parametrize("row", [r for r in WITH_LAW if ExactLaw not in claims_of(r)], ids=lambda row: row.name)
def test_a_claimed_closed_form_is_the_law_of_the_code(row):
    for options in ({}, *row.variants[:1]):
        result = stationary_covariance(Case(Subject(row, options), target("gaussian-1d-scaled")))
        assert result.verdict == "pass", result.reason


@pytest.mark.parametrize("row", [r for r in WITH_LAW if ExactLaw in claims_of(r)], ids=lambda row: row.name)
def test_an_exact_kernel_claims_the_target_itself(row):
    for options in ({}, *row.variants):
        law, T = claims_of(row, options)[StationaryMoments].values(0.3, 2.5), options.get("temperature", 1.0)
        assert law["position"] == pytest.approx(T / 2.5)
        assert law.get("momentum", T) == pytest.approx(T)


def test_the_law_of_a_thermostat_is_read_off_its_hamiltonian():
    """r ~ N(0, T), xi ~ N(A, T / mu), independent of the position and of each other."""
    row, T, A, mu = sampler_row("badodab"), 0.5, 2.0, 2.5
    step = step_map(Subject(row, {"diffusion": A, "temperature": T, "thermal_mass": mu}), target("anharmonic"))
    points, weights = law_rule(step, step.sampler.claims)
    mean = weights @ points
    covariance = (weights[:, None] * (points - mean)).T @ (points - mean)
    np.testing.assert_allclose(mean, [0, 0, A], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(covariance[1:, 1:], np.diag([T, T / mu]), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(covariance[0, 1:], 0, atol=1e-10)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_rule_of_the_position_has_the_moments_of_the_tempered_law(temperature):
    points, weights = position_rule(target("anharmonic"), temperature)
    density = lambda x: np.exp(-(x**4 / 4 + x**2 / 2) / temperature)
    over = lambda f: integrate.quad(lambda x: f(x) * density(x), -9, 9, epsabs=1e-13, limit=400)[0]
    for power in (2, 4, 6):
        expected = over(lambda x, power=power: x**power) / over(lambda x: 1.0)
        assert weights @ points[:, 0] ** power == pytest.approx(expected, rel=1e-10)
    assert weights @ points[:, 0] == pytest.approx(0, abs=1e-12)


def test_the_rule_of_a_gaussian_position_has_its_tempered_covariance():
    plane = target("gaussian-correlated-2d")
    assert plane.gaussian is not None
    points, weights = position_rule(plane, 2.0)
    centred = points - plane.gaussian.mean
    np.testing.assert_allclose(weights @ centred, 0, atol=1e-12)
    covariance = (weights[:, None] * centred).T @ centred
    np.testing.assert_allclose(covariance, 2 * np.linalg.inv(plane.gaussian.precision), rtol=1e-12)


def test_a_law_without_a_rule_is_refused():
    with pytest.raises(OutOfReach, match="temperature 2"):
        position_rule(target("gaussian-mixture-2d"), 2.0)


def test_generic_points_are_distinct_and_inside_the_space():
    for name, size in (("gamma", 1), ("anharmonic", 1), ("gaussian-correlated-2d", 2)):
        row = "sgrld" if name == "gamma" else "sgld"
        points = generic_points(step_map(Subject(sampler_row(row)), target(name)))
        assert points.shape == (4, size)
        gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.eye(4)
        assert gaps.min() > 1e-3
        assert name != "gamma" or np.all(points > 0)
