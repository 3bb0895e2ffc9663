"""A chain that keeps the law, and what it never comes to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.tiers.premises.bulk_reached import _chance_of_goal, bulk_reached, missed_levels
from sgmcmc_verification.checks.tiers.premises.passes import LEVELS, Passes
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler
from tests.helpers.strangers import decide

EXACT = Claims(Source("", "own"), ExactLaw())
LINE = "gaussian-1d-scaled"


def walk(propose, log_density=lambda x: 0.0):
    """A Metropolis walk of JAX with a proposal (key, x, h) -> y that is symmetric but for a density of places."""

    def step(key, x, h, estimator):
        batch, move, coin = jax.random.split(key, 3)
        energy = lambda q: estimator.estimate(batch, (), q)[0].potential + log_density(q)
        y = propose(move, x, h)
        return jnp.where(jnp.log(jax.random.uniform(coin, dtype=x.dtype)) < energy(x) - energy(y), y, x)

    return simple_sampler(step, claims=EXACT)


def normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def of_numpy(propose):
    def step(rng, x, h, estimator):
        energy = lambda q: estimator.estimate(rng, (), q)[0].potential
        y, log_jacobian = propose(rng, x, h)
        return y if np.log(rng.random()) < energy(x) - energy(y) + log_jacobian else x

    return simple_sampler(step, backend="host", claims=EXACT)


def multiplied(rng, x, h):
    factor = np.exp(np.sqrt(2 * h) * rng.standard_normal(x.shape))
    return x * factor, float(np.sum(np.log(factor)))


def langevin(key, x, h, estimator):
    gradient = estimator.estimate(key, (), x)[0].gradient
    return x - h * gradient + jnp.sqrt(2 * h) * normal(jax.random.fold_in(key, 1), x)


def in_a_box(key, x, h, estimator):
    """Langevin steps that turn back at a wall where the law has a sixth of its mass."""
    y = langevin(key, x, h, estimator)
    return jnp.where(jnp.max(jnp.abs(y)) > 0.9, x, y)


def leapfrog(key, state, h, estimator):
    """A momentum that is rubbed for a long time of its own."""
    x, p = state["position"], state["momentum"]
    x = x + h / 2 * p
    p = p - h * estimator.estimate(key, (), x)[0].gradient
    p = jnp.exp(-0.05 * h) * p + jnp.sqrt(-jnp.expm1(-0.1 * h)) * normal(jax.random.fold_in(key, 1), x)
    return {"position": x + h / 2 * p, "momentum": p}


def signed(key, x, h):
    sign = jnp.where(jax.random.bernoulli(key, 0.2), -1.0, 1.0)
    return x * sign * jnp.exp(0.5 * normal(jax.random.fold_in(key, 1), x))


WRONG = {
    "logarithms": walk(
        lambda key, x, h: x * jnp.exp(jnp.sqrt(2 * h) * normal(key, x)), lambda x: -jnp.sum(jnp.log(jnp.abs(x)))
    ),
    "sizes": walk(lambda key, x, h: jnp.abs(x + jnp.sqrt(2 * h) * normal(key, x))),
    "logarithms in NumPy": of_numpy(multiplied),
    "a wall": simple_sampler(in_a_box),
    "squares": walk(
        lambda key, x, h: jnp.sqrt(jnp.abs(x**2 + jnp.sqrt(2 * h) * normal(key, x))),
        lambda x: jnp.sum(jnp.log(jnp.abs(x))),
    ),
}
RIGHT = {
    "Langevin": simple_sampler(langevin),
    "wide": walk(lambda key, x, h: 10 * normal(key, x), lambda x: -jnp.sum(x**2) / 200),
    "coin for the sign": walk(
        lambda key, x, h: (
            x
            * jnp.where(jax.random.bernoulli(key, 0.2), -1.0, 1.0)
            * jnp.exp(0.5 * normal(jax.random.fold_in(key, 1), x))
        ),
        lambda x: -jnp.sum(jnp.log(jnp.abs(x))),
    ),
    "uniform in NumPy": of_numpy(lambda rng, x, h: (x + rng.uniform(-1, 1, x.shape), 0.0)),
    "kept momentum": simple_sampler(
        lambda key, state, h, estimator: leapfrog(key, state, h, estimator),
        init=lambda key, x, estimator: {"position": x, "momentum": normal(key, x)},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_chain_never_comes_to_is_named(name):
    found = decide(bulk_reached, WRONG[name], LINE)
    assert found.verdict == "fail", found.reason
    assert "never came" in found.reason


@pytest.mark.parametrize("name", RIGHT)
def test_a_chain_that_comes_to_all_of_the_bulk_is_no_failure(name):
    assert decide(bulk_reached, RIGHT[name], LINE).verdict == "pass"


@pytest.mark.parametrize("share", [0.1, 1e-4])
def test_a_chain_that_is_too_slow_to_tell_is_no_failure(share):
    slow = walk(lambda key, x, h: x + share * jnp.sqrt(2 * h) * normal(key, x))
    with pytest.raises(OutOfReach, match="moved too little"):
        decide(bulk_reached, slow, LINE)


def test_chances_are_those_of_an_ornstein_uhlenbeck_process():
    rng, n, dt = np.random.default_rng(3), 4000, 1e-3
    u, goal, other = np.full(n, LEVELS[3]), np.zeros(n, bool), np.zeros(n, bool)
    for _ in range(6000):
        moving = ~(goal | other)
        u[moving] += -dt * u[moving] + np.sqrt(2 * dt) * rng.standard_normal(moving.sum())
        goal |= moving & (u <= LEVELS[1])
        other |= moving & (u >= LEVELS[4])
    assert (goal | other).all()
    # the walk of steps of size 0.045 oversteps both levels, which are 1 and 0.5 away
    assert abs(goal.mean() - _chance_of_goal(1, 3)) < 0.03


def test_passes_are_counted_from_below_the_lower_to_above_the_upper():
    values = [-0.2, 0.6, 0.2, 0.6, -0.1, 0.2, 0.7]
    passes = Passes.at(np.array(values[:1]))
    for value in values[1:]:
        passes = passes.after(np.array([value]))
    assert passes.count[0].tolist() == [0, 0, 0, 2, 0, 0]
    assert (passes.lowest[0], passes.highest[0]) == (-0.2, 0.7)
    assert missed_levels(passes) == []
