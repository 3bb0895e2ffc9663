"""The transfer operator gives the exact law of a scheme where there is no closed form.

Oracles: the hand-solved fixed point of Euler's method on a Gaussian (with the target's own knowledge of being Gaussian
taken away); biases of long simulations on the quartic oscillator; expectations by adaptive quadrature.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable
from sgmcmc_verification.checks.exact_laws.transfer_operator import STENCIL, _interpolation, discrete_law
from sgmcmc_verification.checks.tiers.law.transfer_operator import transfer_operator
from sgmcmc_verification.checks.tracing.step_map import JaxStep, step_map
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

CHECK = transfer_operator
SQUARE = 1  # of x, x^2, x^3, ... in the observables of one coordinate


def _second_moment():
    density = lambda x: np.exp(-(x**4) / 4 - x**2 / 2)
    over = lambda f: integrate.quad(lambda x: f(x) * density(x), -8, 8, epsabs=1e-13, limit=200)[0]
    return over(lambda x: x * x) / over(lambda x: 1.0)


def step_of(name, on):
    step = step_map(Subject(sampler_row(name)), on)
    assert isinstance(step, JaxStep)
    return step


@pytest.mark.parametrize("h", [0.05, 0.4])
def test_euler_on_a_gaussian_has_its_exact_variance_and_mean(h):
    """(1 - h lambda)^2 s + 2 h = s, with lambda = 2.5 and mean 0.7."""
    gaussian = dataclasses.replace(target("gaussian-1d-scaled"), gaussian=None)
    law = discrete_law(step_of("sgld", gaussian), h, 1.0, (120,))
    mean, square = law.expectations[:2]
    assert mean == pytest.approx(0.7, abs=1e-6)
    assert square - mean**2 == pytest.approx(1 / (2.5 * (1 - h * 2.5 / 2)), rel=1e-6)


def test_distances_of_the_law_of_euler_are_those_of_two_gaussians():
    """KS and total variation of N(0, s) and N(0, 1/lambda), at their closed-form crossing point."""
    h, lam = 0.2, 2.5
    gaussian = dataclasses.replace(target("gaussian-1d-scaled"), gaussian=None)
    law = discrete_law(step_of("sgld", gaussian), h, 1.0, (280,))
    s, t = 1 / (lam * (1 - h * lam / 2)), 1 / lam
    cross = np.sqrt(np.log(s / t) * s * t / (s - t))  # where the two densities are equal
    gap = norm.cdf(cross / np.sqrt(t)) - norm.cdf(cross / np.sqrt(s))
    dx = (6.5 / np.sqrt(lam) + 8 / np.sqrt(lam)) / 280
    assert law.variation == pytest.approx(2 * gap, abs=dx)
    assert law.kolmogorov == pytest.approx(gap, abs=dx)


@pytest.mark.parametrize(
    ("name", "h", "bias"),
    [
        ("sgld", 0.1, 0.0314),
        ("sgld", 0.05, 0.0142),
        ("baoab", 0.4, -0.0024),
        ("baoab", 0.2, -0.0003),
        ("sghmc-symmetric", 0.4, -0.0179),
        ("sghmc-symmetric", 0.2, -0.0042),
    ],
)
def test_biases_on_the_quartic_oscillator_are_those_of_long_simulations(name, h, bias):
    """E x^2 on U = x^4 / 4 + x^2 / 2 at friction 1; the simulated biases have a standard error of 2e-4."""
    step = step_of(name, target("anharmonic"))
    law = discrete_law(step, h, 1.0, (120,) if step.size == 1 else (48, 40))
    assert law.expectations[SQUARE] - _second_moment() == pytest.approx(bias, abs=5 * 2e-4)


def test_interpolation_is_exact_on_polynomials_and_centred():
    grid = np.linspace(-1.0, 3.0, 20)
    x = np.array([-0.97, 0.1, 0.123, 1.7, 2.99])
    first, weights = _interpolation(grid, x)
    for degree in range(STENCIL):
        values = np.array([w @ grid[f : f + STENCIL] ** degree for f, w in zip(first, weights, strict=True)])
        np.testing.assert_allclose(values, x**degree, rtol=0, atol=1e-12)
    inside = slice(1, 4)
    left = grid[first[inside] + STENCIL // 2 - 1]
    assert np.all((left <= x[inside]) & (x[inside] <= left + (grid[1] - grid[0])))


def _euler(drift_factor=1.0, noise_factor=1.0):
    """Euler's method with its drift or its noise scaled: another limit h -> 0 than the target unless both are 1."""

    def step(key, x, h, estimator):
        gradient = estimator.estimate(key, (), x)[0].gradient
        return x - drift_factor * h * gradient + noise_factor * jnp.sqrt(2 * h) * jax.random.normal(key, x.shape)

    claims = Claims(
        Source("welling2011bayesian", "equation (4)"),
        StationaryLaw(order=1),
    )
    return Subject(Row("local", lambda _: simple_sampler(step, claims=claims), step_size=0.1))


def test_the_right_limit_passes_at_first_order():
    result = transfer_operator(Case(_euler(), target("anharmonic")))
    assert result.verdict == "pass", result.reason
    assert result.measurements["measured_order"] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("factors", [(1.0, np.sqrt(0.5)), (1.1, 1.0)], ids=["half the noise", "a tenth more drift"])
def test_a_wrong_limit_fails(factors):
    result = transfer_operator(Case(_euler(*factors), target("anharmonic")))
    assert result.verdict == "fail", result.reason


@pytest.mark.parametrize("name", ["gaussian-1d-scaled", "gaussian-correlated-2d"])
def test_gaussian_targets_are_left_to_the_lyapunov_equation(name):
    with pytest.raises(NotApplicable, match="not Gaussian"):
        transfer_operator(Case(_euler(), target(name)))
