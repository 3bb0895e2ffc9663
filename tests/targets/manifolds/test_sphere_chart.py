"""The simplex through the sphere: the change of measure against determinants, integrals and the Dirichlet law."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from sgmcmc_verification.targets.manifolds.sphere_chart import log_volume, pulled_back, to_simplex, to_sphere

EPS = np.finfo(np.float64).eps


def sphere_point(size, seed):
    x = np.random.default_rng(seed).normal(size=size)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("size", [2, 3, 6])
def test_the_volume_is_the_determinant_of_the_map_between_tangent_spaces(size):
    for seed in range(4):
        x = sphere_point(size, seed)
        tangents = np.linalg.svd(x[None])[2][1:]
        # the first K - 1 coordinates of d(x^2) along an orthonormal frame
        determinant = np.linalg.det((2 * x * tangents)[:, :-1])
        assert abs(float(log_volume(x)) - math.log(abs(determinant))) <= 16 * size * EPS / np.min(np.abs(x))


def test_the_volume_integrates_to_that_of_the_simplex_once_an_orthant():
    circle = integrate.quad(lambda a: math.exp(log_volume(np.array([math.cos(a), math.sin(a)]))), 0, math.pi / 2)
    assert abs(circle[0] - 1) <= circle[1] + 4 * EPS
    # S^2 in spherical coordinates: products of sines and cosines of low degree, which Gauss-Legendre integrates exactly
    nodes, weights = np.polynomial.legendre.leggauss(24)
    angle, weight = (nodes + 1) * math.pi / 4, weights * math.pi / 4
    theta, phi = np.meshgrid(angle, angle)
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)
    values = np.exp(jax.vmap(jax.vmap(log_volume))(points)) * np.sin(theta)
    assert abs(weight @ values @ weight - 1 / math.factorial(2)) <= 64 * EPS


def test_a_dirichlet_law_is_pulled_back_to_powers_of_the_coordinates():
    alpha = np.array([0.1, 1.0, 3.5, 0.5])

    def potential(theta):
        return -jnp.sum((alpha - 1) * jnp.log(theta))

    points = [sphere_point(4, seed) for seed in range(4)]
    found = np.array([pulled_back(potential)(x) for x in points])
    expected = np.array([-np.sum((2 * alpha - 1) * np.log(np.abs(x))) for x in points])
    tolerance = 64 * EPS * np.max(np.abs(expected))
    assert np.ptp(found - expected) <= tolerance
    assert abs(found[0] - expected[0] + 3 * math.log(2)) <= tolerance
    without_jacobian = np.array([potential(to_simplex(x)) for x in points])  # planted
    assert np.ptp(without_jacobian - expected) > 0.1


def test_the_maps_are_inverse_up_to_sign_and_keep_their_sets():
    theta = np.array([1e-300, 0.25, 0.75, 0.0])
    x = to_sphere(theta)
    assert abs(x @ x - 1) <= 4 * EPS
    np.testing.assert_allclose(to_simplex(x), theta, rtol=4 * EPS)
    np.testing.assert_array_equal(to_simplex(-x), to_simplex(x))
    assert log_volume(x) == -np.inf


def test_single_precision_stays_single():
    x = jnp.array([0.6, 0.0, -0.8], jnp.float32)
    with jax.numpy_dtype_promotion("strict"):
        assert {f(x).dtype for f in (to_simplex, to_sphere, log_volume)} == {jnp.dtype("float32")}
