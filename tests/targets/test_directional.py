"""Targets on manifolds: ranges of their samplers, closed forms, bounds that draws rest on, tempered laws, bad input."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_verification.targets.directional import bingham, circle_posterior, matrix_langevin, product_laws, uniform
from sgmcmc_verification.targets.directional.vmf_mixture import vmf_mixture
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel
from sgmcmc_verification.targets.numerics import spherical
from sgmcmc_verification.targets.numerics.bessel import log_area, log_vmf_constant
from sgmcmc_verification.targets.positive.truncated_gaussian import truncated_gaussian
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.simplex import dirichlet

EPS = np.finfo(np.float64).eps
LEVEL = 1e-6
Z = stats.norm.isf(LEVEL / 2)


def assert_mean(sample, value, error=0.0):
    """A two-sided test of the mean at 1e-6."""
    assert abs(np.mean(sample) - value) <= Z * np.std(sample) / math.sqrt(len(sample)) + error


@pytest.mark.parametrize("n", [1, 2, 3, 5, 500])
def test_heights_follow_their_law_for_every_concentration(n):
    count, kappas = 4000, (1e-3, 1.0, 40.0, 1e4)
    keys = jax.random.key(n)
    heights, radii = spherical.sample_heights(keys, n, jnp.repeat(jnp.array(kappas), count))
    np.testing.assert_allclose(heights**2 + radii**2, 1.0, atol=16 * EPS)
    for values, kappa in zip(np.asarray(heights).reshape(-1, count), kappas, strict=True):
        if n == 1:
            assert set(values) <= {-1.0, 1.0}
            assert stats.binomtest(int(np.sum(values > 0)), count, special.expit(2 * kappa)).pvalue >= LEVEL
        else:
            law = spherical.HeightLaw(n, lambda cosine, sine, kappa=kappa: kappa * cosine)
            assert stats.kstest(values, law.cdf).pvalue >= LEVEL


def test_laws_of_a_height_have_their_closed_forms_on_the_circle_and_the_sphere():
    t = np.linspace(-1, 1, 41)
    plane = spherical.vmf_height_law([1.0, 0.0], [1.0], [[1.0, 0.0]], [3.0]).cdf(t)
    # scipy's distribution function of the angle is a series good to 1e-8
    np.testing.assert_allclose(plane, 2 * stats.vonmises.sf(np.arccos(t), 3.0), rtol=0, atol=1e-8)
    sphere = spherical.vmf_height_law([0, 0, 1.0], [1.0], [[0, 0, 1.0]], [3.0]).cdf(t)
    np.testing.assert_allclose(sphere, np.expm1(3 * (t + 1)) / np.expm1(6.0), rtol=0, atol=256 * EPS)
    # along an oblique axis: the mean is A times the cosine, the second moment that of E x x^T
    axis, direction = np.array([0.6, 0.0, 0.0, 0.8]), np.array([0.0, 0.0, 0.0, 1.0])
    law = spherical.vmf_height_law(axis, [1.0], [direction], [7.0])
    resultant = special.iv(2, 7.0) / special.iv(1, 7.0)
    square = 1 - 3 * resultant / 7
    assert abs(law.expect(lambda t: t) - 0.8 * resultant) <= 64 * EPS
    assert abs(law.expect(lambda t: t**2) - (0.64 * square + 0.36 * (1 - square) / 3)) <= 64 * EPS


def test_the_circle_of_section_5_1_has_the_known_normaliser_and_moments():
    law = target("vmf-mixture-s1")
    directions = np.array([[0.5, math.sqrt(0.75)], [0.5, -math.sqrt(0.75)]])
    for point in ([1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]):
        paper = math.log(math.exp(5 * directions[0] @ point) + 2 * math.exp(5 * directions[1] @ point))
        assert abs(-float(law.potential(jnp.array(point))) - (paper - math.log(513.4594872))) <= 1e-10
    resultant = float(mpmath.besseli(1, 5) / mpmath.besseli(0, 5))
    assert abs(law.moments["theta[0]"].value - resultant / 2) <= 16 * EPS
    assert abs(law.moments["theta[1]"].value + math.sqrt(3) / 6 * resultant) <= 16 * EPS


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_tempered_mixture_is_drawn_exactly(temperature):
    law = target("vmf-mixture-s1").tempered(temperature)
    draws = np.asarray(law.sample(jax.random.key(7), 20_000))
    angle = 2 * np.pi * np.arange(400) / 400
    grid = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    weights = np.exp(-np.asarray(jax.vmap(target("vmf-mixture-s1").potential)(grid)) / temperature)
    for power in (1, 2):
        for i in (0, 1):
            assert_mean(draws[:, i] ** power, weights @ grid[:, i] ** power / weights.sum(), 64 * EPS)
    assert stats.kstest(np.arctan2(draws[:, 1], draws[:, 0]), law.cdfs["angle"].cdf).pvalue >= LEVEL


TEMPERED = ["vmf-s1", "vmf-s49", "vmf-mixture-s2", "bingham-s2", "matrix-langevin-3-2", "dirichlet"]
TEMPERED += [
    "vmf-s1^2",
    "vmf-s2-and-gaussian",
    "dirichlet-sphere",
    "truncated-gaussian",
    "circle-posterior-mean-e1",
    "circle-posterior-pair-e2",
]


@pytest.mark.parametrize("name", TEMPERED)
def test_a_tempered_law_has_the_potential_divided_by_the_temperature(name):
    law, hot = target(name), target(name).tempered(1.6)
    points = [law.example, *(law.manifold.random(jax.random.key(seed)) for seed in range(3))]
    differences = np.array([float(hot.potential(x)) - float(law.potential(x)) / 1.6 for x in points])
    assert np.ptp(differences) <= 256 * EPS * (1 + max(abs(float(law.potential(x))) for x in points))


@pytest.mark.parametrize("n", [2, 3, 10, 200])
@pytest.mark.parametrize("rate", [0.3, 20.0])
def test_bingham_integrals_with_one_rate_are_confluent_hypergeometric(n, rate):
    rates = np.zeros(n)
    rates[-1] = rate
    with mpmath.workdps(25):
        value = mpmath.hyp1f1(0.5, n / 2, -rate)
        square = float(mpmath.hyp1f1(1.5, n / 2 + 1, -rate) / value / n)
        fourth = float(3 * mpmath.hyp1f1(2.5, n / 2 + 2, -rate) / value / (n * (n + 2)))
        expected = float(mpmath.log(value)) + log_area(n)
    scale = abs(expected) + math.lgamma(n / 2) + n
    assert abs(bingham.log_normaliser(rates) - expected) <= 1e-12 + 64 * EPS * scale
    squares, error = bingham.eigen_squares(rates)
    assert abs(squares[-1] - square) <= error
    assert abs(squares.sum() - 1) <= n * error
    fourths, error = bingham.eigen_fourths(rates)
    assert abs(fourths[-1] - fourth) <= error
    assert error <= 1e-11


def test_bingham_on_the_circle_is_von_mises_in_twice_the_angle():
    law = bingham.bingham(np.diag([1.0, 5.0]), "x")
    resultant = float(mpmath.besseli(1, 2) / mpmath.besseli(0, 2))
    assert abs(law.moments["axis[0]^2"].value - (1 + resultant) / 2) <= law.moments["axis[0]^2"].error
    draws = np.asarray(law.sample(jax.random.key(2), 20_000))
    assert stats.kstest(draws[:, 0], law.cdfs["axis[0]"].cdf).pvalue >= LEVEL


def test_sparse_dirichlet_draws_follow_the_beta_law_of_the_logarithm():
    alpha = jnp.array([1e-3, 2e-3, 0.05, 1.5])
    logs = np.asarray(dirichlet.sample_log_dirichlet(jax.random.key(3), alpha, 20_000))
    assert np.all(np.isfinite(logs))
    for k in range(3):  # the last one rounds to 1 in a seventh of the draws
        assert stats.kstest(logs[:, k], lambda y, k=k: dirichlet.log_cdf(alpha, k, y)).pvalue >= LEVEL
    # the two forms of the distribution function agree where they meet, and the far one with mpmath
    near = np.log(1e-20) + np.array([-1e-9, 1e-9])
    for k in range(4):
        low, high = dirichlet.log_cdf(alpha, k, near)
        assert abs(high / low - 1) <= 4e-9 * float(alpha[k]) + 64 * EPS
    with mpmath.workdps(30):
        expected = mpmath.betainc(1e-3, mpmath.mpf(1.552), 0, mpmath.exp(-1200), regularized=True)
    assert abs(dirichlet.log_cdf(alpha, 0, -1200.0) / float(expected) - 1) <= 64 * EPS


@pytest.mark.parametrize("build", [dirichlet.dirichlet, dirichlet.dirichlet_sphere])
def test_very_sparse_dirichlet_positions_have_finite_potentials_and_gradients(build):
    law = build([1e-3, 1e-3, 1e-3], "x")
    draws = law.sample(jax.random.key(4), 2000)
    assert bool(jnp.all(jax.vmap(law.manifold.contains)(draws)))
    values, gradients = jax.vmap(jax.value_and_grad(law.potential))(draws)
    assert bool(jnp.all(jnp.isfinite(values)))
    assert bool(jnp.all(jnp.isfinite(gradients)))
    assert not law.cdfs  # half of the mass of a coordinate is below the smallest float
    assert_mean(np.asarray(draws[:, 0]) ** (1 if build is dirichlet.dirichlet else 2), 1 / 3)


def test_the_sphere_map_changes_the_measure():
    from sgmcmc_verification.targets.manifolds.sphere_chart import pulled_back

    flat, sphere = target("dirichlet"), target("dirichlet-sphere")
    points = np.abs(np.random.default_rng(0).normal(size=(4, 3)))
    points = jnp.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
    differences = jax.vmap(lambda x: pulled_back(flat.potential)(x) - sphere.potential(x))(points)
    assert np.ptp(differences) <= 256 * EPS


def test_truncated_gaussian_moments_have_their_closed_forms():
    rho = 0.6
    law = truncated_gaussian([0.0, 0.0], [[1.0, rho], [rho, 1.0]], "x")
    mass = 0.25 + math.asin(rho) / (2 * math.pi)
    mean = (1 + rho) / (2 * math.sqrt(2 * math.pi) * mass)
    assert abs(law.moments["theta[0]"].value - mean) <= law.moments["theta[0]"].error + 64 * EPS
    # E x_1 x_2 = rho + sqrt(1 - rho^2) / (2 pi mass)
    cross = rho + math.sqrt(1 - rho**2) / (2 * math.pi * mass)
    moment = law.moments["theta[0]*theta[1]"]
    assert abs(moment.value - cross) <= moment.error + 64 * EPS
    means, scales = np.array([0.5, -3.0, 2.0, -20.0]), np.array([1.0, 0.5, 2.0, 1.0])
    line = truncated_gaussian(means, np.diag(scales**2), "x")
    for i in range(4):
        exact = stats.truncnorm(-means[i] / scales[i], np.inf, means[i], scales[i])
        # scipy's own error grows with the distance of the mean, in units of the scale
        bound = 256 * EPS * (1 + (means[i] / scales[i]) ** 2)
        assert abs(line.moments[f"theta[{i}]"].value / exact.mean() - 1) <= bound
        x = exact.ppf([0.1, 0.5, 0.9])
        np.testing.assert_allclose(line.cdfs[f"theta[{i}]"].cdf(x), exact.cdf(x), rtol=0, atol=bound)


def test_truncated_gaussian_draws_are_exact_far_outside_and_in_more_dimensions():
    covariance = [[1.0, 0.7, -0.2], [0.7, 1.5, 0.3], [-0.2, 0.3, 0.8]]
    law = truncated_gaussian([-4.0, -3.0, 0.5], covariance, "x")
    draws = np.asarray(law.sample(jax.random.key(5), 200_000))
    for label, cdf in law.cdfs.items():
        assert stats.kstest(draws[:, int(label[6])], cdf.cdf).pvalue >= LEVEL
    assert_mean(
        draws[:, 0] * draws[:, 1], law.moments["theta[0]*theta[1]"].value, law.moments["theta[0]*theta[1]"].error
    )


def test_matrix_langevin_draws_of_three_columns_are_reweighted_uniform_ones():
    matrix = np.array([[1.5, 0.2, 0.0], [0.3, -1.0, 0.4], [0.0, 0.5, 0.6], [0.2, 0.0, -0.3]])
    law = matrix_langevin.matrix_langevin(matrix, "x")
    assert not law.moments
    draws = np.asarray(law.sample(jax.random.key(8), 5000))
    assert bool(jnp.all(jax.vmap(law.manifold.contains)(draws)))
    # uniform frames by SciPy, weighted: a ratio of means with its standard error
    frames = stats.ortho_group.rvs(4, size=40_000, random_state=9)[:, :, :3]
    weights = np.exp(np.einsum("ij,kij->k", matrix, frames))
    for index in ((0, 0), (1, 1), (2, 1), (2, 2)):
        for power in (1, 2):
            values = frames[:, *index] ** power
            expected = weights @ values / weights.sum()
            error = np.std(weights * (values - expected)) / weights.mean() / math.sqrt(len(values))
            own = draws[:, *index] ** power
            allowance = Z * math.hypot(error, np.std(own) / math.sqrt(len(own)))
            assert abs(own.mean() - expected) <= allowance, index


@cache
def pair(likelihood, second_prior):
    data = circle_posterior.MEAN_DATA if likelihood == "mean" else circle_posterior.PAIR_DATA
    law = circle_posterior.CirclePair(likelihood, second_prior, np.array(data), 1.0)
    return law, circle_posterior.circle_posterior(likelihood, second_prior)


def on_circles(angles):
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)


@pytest.mark.parametrize("reading", [("mean", "e1"), ("pair", "e2")])
def test_the_host_density_of_the_circle_posterior_is_that_of_its_potential_and_below_its_envelope(reading):
    law, on = pair(*reading)
    rng = np.random.default_rng(1)
    angles = rng.uniform(law.box.low, law.box.high, (200, 2))
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(lambda a: -on.potential(on_circles(a)))))(angles)
    host = law.log_density(*angles.T)
    assert np.max(np.abs(host - value)) <= 64 * EPS * np.max(np.abs(host))
    assert np.max(np.abs(law._slopes(*angles.T) - slope)) <= 64 * EPS * 101 * circle_posterior.CONCENTRATION
    centres, half, bound = law.envelope(250)
    for _ in range(5):
        inside = centres + half * rng.choice([-1.0, 0.0, 1.0], centres.shape)
        excess = law.log_density(*inside.T) - law.peak - bound
        assert excess.max() <= 0
    assert bound.max() < 1.5  # tight enough that draws are cheap
    first, second, density = law.joint(120)
    assert abs(density.sum() * (first[1] - first[0]) * (second[1] - second[0]) - 1) <= 1e4 * EPS


def test_readings_of_section_5_2_have_the_modes_and_correlations_that_are_documented():
    found = {}
    for reading in (("mean", "e1"), ("pair", "e1"), ("pair", "e2")):
        law, _ = pair(*reading)
        density = law.joint(200)[2]
        inner = density[1:-1, 1:-1]
        shifts = [(i, j) for i in (0, 1, 2) for j in (0, 1, 2) if (i, j) != (1, 1)]
        peaks = np.all([inner > density[i : i + 198, j : j + 198] for i, j in shifts], axis=0)
        a, b = (law.expect(f, 120) for f in (lambda a, b: a + 0 * b, lambda a, b: b + 0 * a))
        covariance = law.expect(lambda x, y, a=a, b=b: (x - a) * (y - b), 120)
        variances = (
            law.expect(lambda x, y, a=a: (x - a) ** 2 + 0 * y, 120),
            law.expect(lambda x, y, b=b: (y - b) ** 2 + 0 * x, 120),
        )
        found[reading] = (
            int(np.sum(peaks & (inner > 0.1 * density.max()))),
            covariance / math.sqrt(math.prod(variances)),
        )
    assert [modes for modes, _ in found.values()] == [2, 2, 1]
    assert found["mean", "e1"][1] < -0.9
    assert found["pair", "e1"][1] < -0.9
    assert found["pair", "e2"][1] > 0


@pytest.mark.parametrize(("data", "second"), [("MEAN_DATA", math.pi / 24), ("PAIR_DATA", math.pi / 8)])
def test_the_data_of_section_5_2_come_from_their_model(data, second):
    angles = np.array(getattr(circle_posterior, data))
    assert len(angles) == 100
    law = lambda x: (stats.vonmises.cdf(x + math.pi / 24, 20) + stats.vonmises.cdf(x - second, 20)) / 2
    assert stats.kstest(angles, law).pvalue >= LEVEL


@pytest.mark.parametrize("name", ["vmf-mixture-s2", "bingham-s2", "matrix-langevin-3-2", "circle-posterior-mean-e1"])
def test_the_curvature_bounds_the_second_derivative_along_geodesics(name):
    law = target(name)

    def second(x, u):
        v = law.manifold.tangent(x, u)
        v = v / jnp.linalg.norm(v)
        # geodesics to second order: the acceleration is -x |v|^2, row by row on a product, -X V^T V for frames
        squares = jnp.sum(v * v, axis=-1, keepdims=True)
        bend = x @ (v.T @ v) if isinstance(law.manifold, Stiefel) else x * squares
        along = lambda t: law.potential(x + t * v - t * t / 2 * bend)
        return jax.jvp(lambda t: jax.jvp(along, (t,), (1.0,))[1], (0.0,), (1.0,))[1]

    points = jax.vmap(law.manifold.random)(jax.random.split(jax.random.key(0), 500))
    directions = jax.random.normal(jax.random.key(1), points.shape)
    assert float(jnp.max(jax.jit(jax.vmap(second))(points, directions))) <= law.curvature * (1 + 256 * EPS)


def test_the_density_of_a_mixture_is_normalised_in_high_dimension():
    # at one of the directions of two orthogonal components of S^99
    law = vmf_mixture([0.25, 0.75], np.eye(2, 100), [30.0, 50.0], "x")
    terms = [math.log(0.25) + log_vmf_constant(100, 30.0) + 30, math.log(0.75) + log_vmf_constant(100, 50.0)]
    expected = -float(np.logaddexp(*terms))
    assert abs(float(law.potential(jnp.eye(100)[0])) - expected) <= 64 * EPS * abs(expected)


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: vmf_mixture([0.5, 0.6], np.eye(2), [1.0, 1.0], "x"), "weights"),
        (lambda: vmf_mixture([0.5, 0.5], np.zeros((2, 2)), [1.0, 1.0], "x"), "directions"),
        (lambda: vmf_mixture([1.0], [[1.0]], [1.0], "x"), "directions"),
        (lambda: vmf_mixture([0.5, 0.5], np.eye(2), [1.0, 0.0], "x"), "concentrations"),
        (lambda: bingham.bingham(np.eye(3), "x"), "matrix"),
        (lambda: bingham.bingham([[1.0, 2.0], [0.0, 1.0]], "x"), "matrix"),
        (lambda: bingham.bingham([1.0, 2.0], "x"), "matrix"),
        (lambda: uniform.uniform_spheres(count=1), "count"),
        (lambda: uniform.uniform_stiefel(3, 1), "p"),
        (lambda: product_laws.independent((target("vmf-s1"),), "x"), "parts"),
        (lambda: dirichlet.dirichlet([1.0], "x"), "alpha"),
        (lambda: dirichlet.dirichlet_sphere([1.0, 0.0], "x"), "alpha"),
        (lambda: target("dirichlet-sparse").tempered(0.5), "temperature"),
        (lambda: truncated_gaussian([0.0], [[-1.0]], "x"), "covariance"),
        (lambda: truncated_gaussian([-30.0], [[1.0]], "x"), "mean"),
        (lambda: matrix_langevin.matrix_langevin(np.eye(3), "x"), "matrix"),
        (lambda: matrix_langevin.matrix_langevin(np.eye(3, 2), "x"), "matrix"),
        (lambda: circle_posterior.circle_posterior("median"), "likelihood"),
        (lambda: circle_posterior.circle_posterior(second_prior="e3"), "second_prior"),
        (lambda: circle_posterior.circle_posterior(angles=[math.nan]), "angles"),
        (lambda: circle_posterior.circle_posterior(temperature=0.0), "temperature"),
    ],
)
def test_bad_input_raises_one_error_that_names_the_argument(build, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        build()
