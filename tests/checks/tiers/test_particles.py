"""The mean-field fixed point tells a right particle method from a wrong one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import sgmcmc_verification.samplers.particles.svgd
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable
from sgmcmc_verification.checks.core.lookup import resolve_object
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.runner.execute import execute
from sgmcmc_verification.checks.tiers.particles.mean_field import (
    divergence_falls,
    divergence_rate,
    mean_field_fixed_point,
    quantile_particles,
    velocity_field,
)
from sgmcmc_verification.samplers.interface.claims import Claims, ParticleLaw, ParticleVelocity, Source
from sgmcmc_verification.samplers.particles.kernels import squared_distances
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target

CHECK = mean_field_fixed_point
SVGD = Subject(sampler_row("svgd"))


def direction(attraction=1.0, repulsion=1.0, swapped=False):
    """The direction of SVGD with a wrong factor, or with the gradient taken where the particle is moved to."""

    def stein_direction(particles, gradients, weights, bandwidths):
        del weights
        (bandwidth,) = bandwidths
        kernel = jnp.exp(-squared_distances(particles) / (2 * bandwidth))
        pull = kernel.sum(axis=1)[:, None] * gradients if swapped else kernel.T @ gradients
        push = (kernel.sum(axis=0)[:, None] * particles - kernel.T @ particles) / bandwidth
        return (repulsion * push - attraction * pull) / particles.shape[0]

    return stein_direction


@pytest.mark.parametrize(
    ("name", "options"), [("gaussian-1d-scaled", {}), ("anharmonic", {}), ("anharmonic", {"bandwidth": 0.5})], ids=str
)
def test_svgd_rests_at_the_target(name, options):
    result = mean_field_fixed_point(Case(Subject(sampler_row("svgd"), options), target(name)))
    assert result.verdict == "pass", result.reason
    assert result.measurements["speeds"][-1] < result.measurements["speeds"][0]


@pytest.mark.parametrize(
    ("factors", "passes"),
    [
        ({}, True),
        ({"repulsion": 0.0}, False),
        ({"repulsion": -1.0}, False),
        ({"attraction": -1.0}, False),
        ({"attraction": 1.1}, False),
        ({"swapped": True}, False),
    ],
    ids=["right", "no repulsion", "repulsion reversed", "gradient reversed", "a tenth more pull", "transposed"],
)
def test_only_the_right_direction_rests_at_the_target(monkeypatch, factors, passes):
    monkeypatch.setattr(sgmcmc_verification.samplers.particles.svgd, "stein_direction", direction(**factors))
    result = mean_field_fixed_point(Case(SVGD, target("anharmonic")))
    assert result.verdict == ("pass" if passes else "fail"), result.reason


def test_particles_are_the_quantiles_of_the_target():
    found = quantile_particles(target("gaussian-1d-scaled"), 100)[:, 0]
    expected = stats.norm(0.7, np.sqrt(0.4)).ppf((np.arange(100) + 0.5) / 100)
    # linear interpolation of the distribution function on a grid of 40 001 points over 16 standard deviations
    spacing = 16 / 40_000
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * spacing**2)


def test_the_velocity_of_two_particles_is_the_formula_of_the_paper():
    """Particles x_i, K = exp(-(x_1 - x_2)^2 / 2 h): phi_1 = (-U'_1 - K U'_2 + K (x_1 - x_2) / h) / 2."""
    line, h = target("gaussian-1d-scaled"), 0.8
    x = quantile_particles(line, 2)[:, 0]
    slope, gap = 2.5 * (x - 0.7), x[0] - x[1]
    kernel = np.exp(-(gap**2) / (2 * h))
    expected = np.array(
        [-slope[0] - kernel * slope[1] + kernel * gap / h, -slope[1] - kernel * slope[0] - kernel * gap / h]
    )
    found = velocity_field(Subject(sampler_row("svgd"), {"bandwidth": h}), line, x[:, None], 1e-3)[:, 0]
    np.testing.assert_allclose(found, expected / 2, rtol=1e-11)


def test_the_rate_of_the_divergence_is_minus_the_squared_stein_discrepancy():
    """q = N(m, s^2), p = N(0, 1) scaled: E_q E_q[u_p] over its two parts, by quadrature with another rule."""
    line, h = target("gaussian-1d-scaled"), 0.8
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights, shift, scale = weights / weights.sum(), 0.5, 0.4
    x = 0.7 + shift + scale * nodes
    score, gap = -2.5 * (x - 0.7), x[:, None] - x[None, :]
    kernel = np.exp(-(gap**2) / (2 * h))
    # v(y) = E_q[k(x, y) score(x) + d_x k(x, y)] and its derivative in y
    v = weights @ (kernel * (score[:, None] - gap / h))
    slope = weights @ (kernel * gap / h * (score[:, None] - gap / h) + kernel / h)
    expected = -(weights @ (v * score + slope)) / (weights @ (np.abs(v * score) + np.abs(slope)))
    count = 512
    particles = 0.7 + shift + scale * stats.norm.ppf((np.arange(count) + 0.5) / count)
    found = divergence_rate(Subject(sampler_row("svgd"), {"bandwidth": h}), line, particles[:, None], 1e-4)
    assert expected < 0
    assert found == pytest.approx(expected, abs=10 / count)  # n quantiles represent the law to O(1/n)


@pytest.mark.parametrize(("sign", "verdict"), [(1.0, "pass"), (-1.0, "fail")], ids=["descent", "ascent"])
def test_the_divergence_falls_for_the_right_direction_only(monkeypatch, sign, verdict):
    right = direction()
    monkeypatch.setattr(sgmcmc_verification.samplers.particles.svgd, "stein_direction", lambda *a: sign * right(*a))
    assert divergence_falls(Case(SVGD, target("anharmonic"))).verdict == verdict


def test_a_sampler_of_one_chain_lacks_the_claim_of_particles():
    with pytest.raises(NotApplicable, match="claims no ParticleLaw"):
        mean_field_fixed_point(Case(Subject(sampler_row("sgld")), target("anharmonic")))


def test_quantiles_need_a_line():
    with pytest.raises(NotApplicable, match="one-dimensional"):
        mean_field_fixed_point(Case(SVGD, target("gaussian-correlated-2d")))


def kept_width(width):
    """Velocities of SVGD with a Gaussian kernel whose width is not declared, which `width` gives of the particles."""

    def velocity(x, g, w):
        gaps = x[:, None] - x[None]
        k = jnp.exp(-jnp.sum(gaps**2, -1) / width(x))
        given = k * w[:, None]
        return jnp.einsum("ji,jd->id", given, -g) + jnp.einsum("ji,jid->id", given, -2 * gaps / width(x))

    return velocity


@pytest.mark.parametrize(
    ("velocity", "verdict"),
    [
        (kept_width(lambda x: 1.0), "pass"),
        (lambda x, g, w: kept_width(lambda x: 1.0)(x, g / 2, w), "fail"),
        (kept_width(lambda x: jnp.median(jnp.abs(x)) + 1.0), "out-of-reach"),
        (kept_width(lambda x: jnp.max(jnp.abs(x))), "out-of-reach"),
    ],
    ids=["fixed", "half of the gradient", "median", "largest"],
)
def test_a_kernel_whose_width_is_not_declared_has_to_be_fixed(velocity, verdict):
    def step(key, x, h, estimator):
        gradients = jax.vmap(lambda x: estimator.estimate(key, (), x)[0].gradient)(x)
        return x + h * velocity(x, gradients, jnp.full(len(x), 1 / len(x)))

    sampler = simple_sampler(step, claims=Claims(Source("", "own"), ParticleLaw(), ParticleVelocity(velocity)))
    subject = resolve_object("mine", sampler)[0]
    for name in ("gaussian-1d-scaled", "gaussian-correlated-2d"):
        assert execute(find_statement("weighted_fixed_point"), subject, name, 0).verdict == verdict
