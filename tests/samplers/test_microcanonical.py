"""Microcanonical samplers: their sub-flows against an integrator of the equation, reversal, and volume."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.microcanonical.isokinetic import kick, refresh, uniform_direction
from sgmcmc_verification.samplers.microcanonical.mams import MAMS
from sgmcmc_verification.samplers.microcanonical.mclmc import MCLMC, DirectedPoint
from sgmcmc_verification.targets.registry import target


def direction(seed: int, size: int) -> np.ndarray:
    u = np.random.default_rng(seed).normal(size=size)
    return u / np.linalg.norm(u)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_kick_solves_its_equation_and_its_work_is_the_change_of_volume(size):
    """du = P(u) f dt with f = -g / (d - 1), and d log J / dt = div P(u) f = -(d - 1) u . f on the sphere."""
    u, g, time = direction(size, size), 3 * np.random.default_rng(1).normal(size=size), 0.6

    def equation(_, y):
        f = -g / (size - 1)
        return np.append(f - y[:-1] * (y[:-1] @ f), (size - 1) * (y[:-1] @ f))

    end = solve_ivp(equation, (0, time), np.append(u, 0), rtol=1e-11, atol=1e-12).y[:, -1]
    found = kick(jnp.asarray(u), jnp.asarray(g), time)
    np.testing.assert_allclose(found.direction, end[:-1], atol=1e-9)
    assert float(found.work) == pytest.approx(end[-1], abs=1e-9)
    # volume by the Jacobian itself, on tangent vectors of both ends
    jacobian = np.asarray(jax.jacobian(lambda v: kick(v, jnp.asarray(g), time).direction)(jnp.asarray(u)))
    frame = lambda v: np.linalg.svd(v[None])[2][1:]
    inside = frame(np.asarray(found.direction)) @ jacobian @ frame(u).T
    assert np.log(abs(np.linalg.det(inside))) == pytest.approx(-float(found.work), abs=1e-8)


def test_a_kick_of_any_strength_is_finite_and_none_leaves_the_direction():
    u = jnp.asarray(direction(0, 3))
    for size in (1e-300, 1e3, 1e8):
        found = kick(u, size * jnp.asarray([1.0, -2.0, 0.5]), 1.0)
        assert np.all(np.isfinite(found.direction))
        assert np.isfinite(found.work)
        assert float(jnp.linalg.norm(found.direction)) == pytest.approx(1, abs=1e-14)
    none = kick(u, jnp.zeros(3), 1.0)
    np.testing.assert_allclose(none.direction, u, rtol=4 * np.finfo(float).eps)
    assert none.work == 0


def test_refreshment_keeps_the_uniform_law_and_decays_as_it_says():
    """On a circle the angle is uniform before and after, and the cosine of the turn has the mean of N(e1, nu^2 I)."""
    keys = jax.random.split(jax.random.key(0), 20_000)

    def one(key):
        first, second = jax.random.split(key)
        u = uniform_direction(first, jnp.zeros(2))
        return u, refresh(second, u, 0.4, 2.0)

    before, after = map(np.asarray, jax.vmap(one)(keys))
    for u in (before, after):
        assert stats.kstest(np.arctan2(u[:, 1], u[:, 0]) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-4
    cosine = np.sum(before * after, axis=1)
    nu = np.sqrt(np.expm1(2 * 0.4 / 2.0) / 2)
    z = np.random.default_rng(0).normal(size=(400_000, 2)) * nu + [1, 0]
    expected = z[:, 0] / np.linalg.norm(z, axis=1)
    error = np.hypot(cosine.std() / len(cosine) ** 0.5, expected.std() / len(expected) ** 0.5)
    assert abs(cosine.mean() - expected.mean()) < 5 * error


def test_a_trajectory_reversed_comes_back_with_the_opposite_work():
    law = target("banana")
    sampler, estimator = MAMS(num_steps=4, temperature=1.3), Exact(law)
    start = sampler.init(jax.random.key(0), jnp.asarray([0.4, -0.3]), estimator)
    u = jnp.asarray(direction(3, 2))
    end, turned, work = sampler.trajectory(jax.random.key(1), start, u, 0.3, estimator)
    back, again, undone = sampler.trajectory(jax.random.key(2), end, -turned, 0.3, estimator)
    np.testing.assert_allclose(back.position, start.position, atol=1e-12)
    np.testing.assert_allclose(again, -u, atol=1e-12)
    assert float(work + undone) == pytest.approx(0, abs=1e-12)


def test_the_energy_is_kept_to_the_second_order_of_the_step():
    """(U(x) - U(y)) / T - work goes to zero as h^2 over a fixed length: the exact flow keeps it."""
    law = target("banana")
    estimator = Exact(law)
    errors = []
    for steps in (20, 40, 80):
        sampler = MAMS(num_steps=steps)
        start = sampler.init(jax.random.key(0), jnp.asarray([0.4, -0.3]), estimator)
        end, _, work = sampler.trajectory(jax.random.key(1), start, jnp.asarray(direction(3, 2)), 1 / steps, estimator)
        errors.append(abs(float(start.potential - end.potential - work)))
    rates = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(np.abs(rates - 2) < 0.1)


def test_one_coordinate_is_refused():
    law = target("gaussian-1d-scaled")
    with pytest.raises(ValueError, match="at least two coordinates"):
        MCLMC().init(jax.random.key(0), law.example, Exact(law))
    state = MAMS().init(jax.random.key(0), law.example, Exact(law))
    with pytest.raises(ValueError, match="at least two coordinates"):
        MAMS().step(jax.random.key(0), state, 0.1, Exact(law))


def test_the_direction_is_one_over_all_leaves_and_its_length_is_mended():
    law = target("gaussian-pytree")
    sampler, estimator = MCLMC(), Exact(law)
    state = sampler.init(jax.random.key(0), law.example, estimator)
    for i in range(5):
        state = sampler.step(jax.random.key(i), state, 0.2, estimator)
    length = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(state.direction))
    assert length == pytest.approx(1, abs=1e-14)
    doubled = jax.tree.map(lambda u: 2 * u, state.direction)
    mended = sampler.pack(jax.random.key(0), DirectedPoint(state.position, doubled), estimator)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.allclose(a, b)), mended.direction, state.direction))
