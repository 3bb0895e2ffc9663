"""Random points have the law that each manifold says: uniform where the volume is finite."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.simplex import Simplex
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel

N = 20_000
# DKW: P(distance > e) <= 2 exp(-2 n e^2), here 1e-8 for each of about thirty statistics; 1 / n for the steps
ALLOWANCE = np.sqrt(np.log(2 / 1e-8) / (2 * N)) + 1 / N


ALL = Product((Sphere(3), ProductOfSpheres(2, 3), Simplex(4), Stiefel(3, 2), Positive(2)))


@cache
def draws():
    """One array (N, ...) a factor."""
    compiled = jax.jit(jax.vmap(ALL.random))
    return tuple(np.asarray(part) for part in compiled(jax.random.split(jax.random.key(1), N)))


def distance(sample, cdf):
    """Kolmogorov-Smirnov distance of each column of (N, ...) to a law; the largest."""
    columns = np.sort(np.reshape(sample, (N, -1)), axis=0)
    return max(float(np.max(np.abs(cdf(column) - np.arange(1, N + 1) / N))) for column in columns.T)


def uniform(x):
    """A coordinate of a uniform point of the two-sphere is uniform on (-1, 1) [Archimedes]."""
    return (1 + x) / 2


def rotation_angle(frames):
    """Angle (N,) of the rotation with columns x_1, x_2 and x_1 x x_2."""
    third = np.cross(frames[:, :, 0], frames[:, :, 1])
    trace = frames[:, 0, 0] + frames[:, 1, 1] + third[:, 2]
    return np.arccos(np.clip((trace - 1) / 2, -1, 1))


def haar_angle(angle):
    """Distribution function of the angle of a uniform rotation of R^3: density (1 - cos) / pi."""
    return (angle - np.sin(angle)) / np.pi


def beta(x):
    """A coordinate of a uniform point of the simplex with four corners is Beta(1, 3)."""
    return 1 - (1 - x) ** 3


def test_random_points_of_spheres_are_uniform_and_independent():
    sphere, spheres, *_ = draws()
    assert distance(sphere, uniform) <= ALLOWANCE
    assert distance(spheres, uniform) <= ALLOWANCE
    # |x y| of independent uniforms: t - t log t; rows of one array, and factors of the product
    for product in (spheres[:, 0, 0] * spheres[:, 1, 0], sphere[:, 0] * spheres[:, 0, 0]):
        assert distance(np.abs(product), lambda t: t - t * np.log(t)) <= ALLOWANCE


def test_random_points_of_the_simplex_are_uniform():
    assert distance(draws()[2], beta) <= ALLOWANCE
    wrong = np.random.default_rng(0).uniform(size=(N, 4))
    assert distance(wrong / wrong.sum(axis=1, keepdims=True), beta) > ALLOWANCE


def test_random_frames_are_uniform():
    frames = draws()[3]
    turn = stats.ortho_group(dim=3, seed=1).rvs()
    assert distance(frames, uniform) <= ALLOWANCE
    assert distance(turn @ frames @ np.array([[0.6, -0.8], [0.8, 0.6]]), uniform) <= ALLOWANCE
    assert distance(rotation_angle(frames), haar_angle) <= ALLOWANCE
    wrong = np.linalg.qr(np.random.default_rng(0).normal(size=(N, 3, 2)))[0]  # with the signs that LAPACK chose
    assert distance(wrong, uniform) > ALLOWANCE


def test_random_points_of_the_positive_orthant_are_exponential():
    assert distance(draws()[4], stats.expon.cdf) <= ALLOWANCE


def test_random_points_satisfy_the_constraint():
    contains = jax.jit(jax.vmap(ALL.contains))
    assert bool(jnp.all(contains(draws())))
