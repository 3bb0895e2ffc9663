"""Fourth cumulants of affine recursions with discrete draws.

Oracles: the cumulants of a sum of independent terms, which are the sums of theirs (a random sign has -2); the recursion
of moments of a number with a random factor, by hand; long chains of a recursion that has skew offsets and a memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case
from sgmcmc_verification.checks.exact_laws.fourth_cumulants import _fourth_moments, fourth_cumulants
from sgmcmc_verification.checks.exact_laws.lyapunov import stationary_law
from sgmcmc_verification.checks.tiers.law.gaussian import gaussian_limit
from sgmcmc_verification.checks.tracing.step_map import Affine, step_map
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.interface.from_step import simple_sampler
from sgmcmc_verification.targets.registry import target

LINE = target("gaussian-1d-scaled")
CURVATURE = 2.5
SOURCE = Source("leimkuhler2013rational", "equation (3)")


def signs(key, shape):
    return 2.0 * jax.random.randint(key, shape, 0, 2) - 1


def three_points(key, shape):
    """Mean 0, variance 1 and fourth moment 3, as of a normal number."""
    return jnp.sqrt(3.0) * jnp.array([-1.0, 0, 0, 0, 0, 1])[jax.random.randint(key, shape, 0, 6)]


def leimkuhler_matthews(draws, order=2):
    """x' = x - h U'(x) + sqrt(h / 2) (xi + xi'), xi the draw of the step before."""

    def init(key, position, estimator):
        return position, jnp.asarray(draws(key, position.shape))

    def step(key, state, h, estimator):
        x, before = state
        gradient_key, key = jax.random.split(key)
        draw = draws(key, x.shape)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        return x - h * gradient + jnp.sqrt(h / 2) * (before + draw), draw

    claims = Claims(SOURCE, StationaryLaw(order=order))
    sampler = simple_sampler(step, init=init, position=lambda state: state[0], claims=claims)
    return Subject(Row("local", lambda _: sampler, step_size=0.1))


def euler(draws, order=1):
    """Euler's method with other draws than normal ones."""

    def step(key, x, h, estimator):
        gradient_key, key = jax.random.split(key)
        gradient = estimator.estimate(gradient_key, (), x)[0].gradient
        return x - h * gradient + jnp.sqrt(2 * h) * draws(key, x.shape)

    claims = Claims(SOURCE, StationaryLaw(order=order))
    return Subject(Row("local", lambda _: simple_sampler(step, claims=claims), step_size=0.1))


@pytest.mark.parametrize("h", [0.03, 0.3])
def test_of_signs_it_is_that_of_a_sum_of_independent_terms(h):
    """x = sum_k (1 - a h)^k sqrt(2 h) s_k, and the cumulants of independent terms add up."""
    a = 1 - CURVATURE * h
    found = fourth_cumulants(step_map(euler(signs), LINE), h)
    np.testing.assert_allclose(found, [-2 * (2 * h) ** 2 / (1 - a**4)], rtol=1e-9)


@pytest.mark.parametrize("h", [0.03, 0.3])
def test_of_draws_that_are_kept(h):
    """x = sqrt(h / 2) (s_0 + sum_k (a^k + a^(k - 1)) s_k)."""
    a = 1 - CURVATURE * h
    found = fourth_cumulants(step_map(leimkuhler_matthews(signs), LINE), h)
    np.testing.assert_allclose(found, [-2 * (h / 2) ** 2 * (1 + (1 + a) ** 4 / (1 - a**4))], rtol=1e-9)


def test_normal_draws_have_none():
    assert fourth_cumulants(step_map(euler(jax.random.normal), LINE), 0.1).size == 0


def test_of_a_random_factor():
    """m_4 = E A^4 m_4 + 6 E A^2 m_2 + 3 for s' = A s + xi."""
    factors, weights = np.array([0.3, 0.9]), np.array([0.25, 0.75])
    maps = [Affine(np.array([[a]]), np.eye(1), np.zeros(1), w) for a, w in zip(factors, weights, strict=True)]
    second = 1 / (1 - weights @ factors**2)
    fourth = (6 * (weights @ factors**2) * second + 3) / (1 - weights @ factors**4)
    law = stationary_law(maps)
    np.testing.assert_allclose(law.covariance, [[second]], rtol=1e-12)
    np.testing.assert_allclose(_fourth_moments(maps, law.mean, law.covariance), [fourth], rtol=1e-12)


def test_moments_of_a_factor_that_grows_too_often_do_not_exist():
    maps = [Affine(np.array([[a]]), np.eye(1), np.zeros(1), 0.5) for a in (0.2, 1.2)]
    law = stationary_law(maps)
    assert law.radius < 1
    assert _fourth_moments(maps, law.mean, law.covariance) is None


def test_of_skew_offsets_and_two_coordinates():
    """Two coordinates, three maps with unequal weights and offsets: chains of 400 steps from 400,000 starts."""
    generator = np.random.default_rng(7)
    weights = np.array([0.6, 0.3, 0.1])
    maps = [
        Affine(
            0.45 * generator.standard_normal((2, 2)),
            0.5 * generator.standard_normal((2, 1)),
            2 * generator.standard_normal(2),
            w,
        )
        for w in weights
    ]
    law = stationary_law(maps)
    tensor = _fourth_moments(maps, law.mean, law.covariance)
    assert tensor is not None
    count = 400_000
    s = np.zeros((count, 2))
    for _ in range(60):
        chosen = generator.choice(3, count, p=weights)
        matrices, noise, offsets = (np.stack([getattr(m, n) for m in maps]) for n in ("matrix", "noise", "offset"))
        moved = np.einsum("nij,nj->ni", matrices[chosen], s)
        s = moved + np.einsum("nij,nj->ni", noise[chosen], generator.standard_normal((count, 1))) + offsets[chosen]
    centred = s - law.mean
    products = np.einsum("ni,nj,nk,nl->nijkl", centred, centred, centred, centred).reshape(count, -1)
    error = products.std(axis=0) / np.sqrt(count)
    np.testing.assert_array_less(np.abs(products.mean(axis=0) - tensor), 5 * error)
    assert error.max() < 0.02 * np.abs(tensor).max()


def verdict(subject):
    return gaussian_limit(Case(subject, LINE))


def test_order_two_needs_the_fourth_moment_of_the_draws():
    found = verdict(leimkuhler_matthews(signs))
    assert found.verdict == "fail"
    assert "order 1.00" in found.explanation


@pytest.mark.parametrize(
    "subject",
    [
        leimkuhler_matthews(three_points),
        leimkuhler_matthews(jax.random.normal),
        leimkuhler_matthews(signs, order=1),
        euler(signs),
        euler(three_points),
    ],
)
def test_draws_with_the_moments_that_an_order_needs(subject):
    assert verdict(subject).verdict == "pass"
