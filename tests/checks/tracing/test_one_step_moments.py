"""Mean and second moment of a step that is quadratic in many normals, against their closed form.

With e ~ N(0, I) and z' - z = b + A e + (e^T C_i e)_i, C symmetric: E = b + tr C_i, and
E (z' - z)(z' - z)^T = E E^T + A A^T + 2 (tr C_i C_j).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.core.finding import EPS
from sgmcmc_verification.checks.numerics.quadrature import gauss_hermite, symmetric_rule
from sgmcmc_verification.checks.tracing.one_step_moments import FEW, LEVELS, moments_of, one_step_moments, step_sizes
from sgmcmc_verification.checks.tracing.step_map import step_map
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import gradient, subject

PLANE = target("gaussian-correlated-2d")
POINTS = np.array([[0.3, -1.2], [1.1, -0.4], [0.5, -1.0]])


RULES = {3: gauss_hermite(3, 12), 30: symmetric_rule(30, 7), 60: symmetric_rule(60, 5)}
ROUNDOFF = {count: 100 * EPS * float(np.abs(weights).sum()) for count, (_, weights) in RULES.items()}
"""A hundred units in the last place of the terms: the weights of degree 7 have both signs, of a size of 1e5."""


class Quadratic:
    """x' = x - h g + sqrt(2 h) A e + h (e^T C_i e)_i + `more(e)` with k normals."""

    def __init__(self, count, more=lambda e, h: 0.0):
        generator = np.random.default_rng(count)
        self.count, self.more = count, more
        self.linear = generator.standard_normal((2, count)) / np.sqrt(count)
        square = generator.standard_normal((2, count, count)) / count
        self.square = square + square.transpose(0, 2, 1)

    def step(self, key, x, step_size, estimator):
        e, h = jax.random.normal(key, (self.count,)), step_size
        quadratic = jnp.einsum("iab,a,b->i", self.square, e, e)
        return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * self.linear @ e + h * quadratic + self.more(e, h)

    def moments(self, x, h):
        """By the closed form."""
        drift = -h * PLANE.gaussian.precision @ (x - PLANE.gaussian.mean)
        mean = drift + h * np.trace(self.square, axis1=1, axis2=2)
        products = np.einsum("iab,jba->ij", self.square, self.square)
        return mean, np.outer(mean, mean) + 2 * h * self.linear @ self.linear.T + 2 * h**2 * products


@pytest.mark.parametrize("count", [3, 30, 60], ids=["tensor rule", "degree 7", "degree 5"])
def test_moments_of_a_step_that_is_quadratic_in_its_normals_are_exact(count):
    candidate = Quadratic(count)
    step, hs = step_map(subject(candidate, PLANE.name), PLANE), np.array([0.1, 0.01])
    mean, square = moments_of(step, POINTS, hs)
    assert mean.shape[1] == (FEW if count == 60 else len(POINTS))
    tolerance = ROUNDOFF[count]
    for i, h in enumerate(hs):
        for j in range(mean.shape[1]):
            expected = candidate.moments(POINTS[j], h)
            np.testing.assert_allclose(mean[i, j], expected[0], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(square[i, j], expected[1], rtol=tolerance, atol=tolerance)


def test_a_step_that_is_not_quadratic_in_too_many_normals_is_out_of_reach():
    candidate = Quadratic(60, lambda e, h: 1e-3 * h * jnp.sum(e**3))
    with pytest.raises(OutOfReach, match="60 normals a step, in which it is not quadratic"):
        moments_of(step_map(subject(candidate, PLANE.name), PLANE), POINTS, np.array([0.1]))


def test_too_many_normals_for_any_rule_are_out_of_reach():
    class Many:
        def step(self, key, x, step_size, estimator):
            return x + jnp.sqrt(step_size / 400) * jax.random.normal(key, (400, 2)).sum(axis=0)

    with pytest.raises(OutOfReach, match="800 normals a step are too many"):
        moments_of(step_map(subject(Many(), PLANE.name), PLANE), POINTS, np.array([0.1]))


class OnHost:
    """x' = x - h g + sqrt(2 h) (e_1 + e_2) / sqrt(2) + h e_1 e_2, counting its steps; or with another noise."""

    backend = "host"

    def __init__(self, noise=None):
        self.noise, self.steps = noise, 0

    def step(self, rng, x, step_size, estimator):
        self.steps += 1
        g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        if self.noise is not None:
            return x - step_size * g + np.sqrt(2 * step_size) * self.noise(rng, x.shape)
        one, two = rng.standard_normal(x.shape), rng.standard_normal(x.shape)
        return x - step_size * g + np.sqrt(step_size) * (one + two) + step_size * one * two

    def moments(self, x, h):
        """By the closed form."""
        mean = -h * PLANE.gaussian.precision @ (x - PLANE.gaussian.mean)
        return mean, np.outer(mean, mean) + (2 * h + h**2 * (self.noise is None)) * np.eye(2)


def signs(rng, shape):
    return np.where(rng.standard_normal(shape) >= 0, 1.0, -1.0)


def coins(rng, shape):
    return 2.0 * rng.integers(0, 2, size=shape) - 1


def signs_beside_another(rng, shape):
    """Three normals in two dimensions, which are too many for a product of rules unless it has to be one."""
    rng.standard_normal()
    return signs(rng, shape)


@pytest.mark.parametrize(
    "noise",
    [None, signs, signs_beside_another, coins],
    ids=["normals", "signs of normals", "signs of normals and one more", "coins"],
)
def test_moments_of_a_step_in_python_are_exact(noise):
    candidate, h = OnHost(noise), 0.1
    mean, square = moments_of(step_map(subject(candidate, PLANE.name), PLANE), POINTS, np.array([h]))
    for j in range(len(POINTS)):
        expected = candidate.moments(POINTS[j], h)
        np.testing.assert_allclose(mean[0, j], expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(square[0, j], expected[1], rtol=1e-12, atol=1e-12)


def test_a_step_in_python_that_is_quadratic_in_its_normals_is_taken_few_times():
    candidate = OnHost()
    moments_of(step_map(subject(candidate, PLANE.name), PLANE), POINTS, np.array([0.1]))
    assert candidate.steps < 50 * len(POINTS)  # 6^4 nodes of a product of rules


def test_step_sizes_are_the_usual_one_and_its_halvings():
    mine = subject(Quadratic(3), PLANE.name, step_size=0.2)
    hs = step_sizes(mine, PLANE)
    np.testing.assert_allclose(hs, 0.2 / PLANE.curvature / 2.0 ** np.arange(LEVELS))
    found, mean, _ = one_step_moments(mine, PLANE, POINTS[:1])
    np.testing.assert_array_equal(found, hs)
    np.testing.assert_allclose(
        mean[-1, 0], Quadratic(3).moments(POINTS[0], hs[-1])[0], rtol=ROUNDOFF[3], atol=ROUNDOFF[3]
    )
