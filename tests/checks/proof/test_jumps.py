"""Numbers of a state that are drawn afresh now and then: thermostats of Andersen, randomised HMC, and what is none."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.draws import Draw, History
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.jumps import OTHER_LAW, OTHERWISE, Fresh, Way, without_jumps
from sgmcmc_verification.checks.proof.laws import Normal
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import Space
from sgmcmc_verification.samplers.interface.claims import Claims, Source, StationaryLaw
from sgmcmc_verification.samplers.simple import simple_sampler

COLD = Claims(Source("", "own"), StationaryLaw(temperature=0.5))


class Phase(NamedTuple):
    x: jax.Array
    v: jax.Array


def phase(step, claims=None):
    return simple_sampler(
        step,
        init=lambda key, x, estimator: Phase(x, jnp.zeros_like(x)),
        position=lambda state: state.x,
        unpack=lambda state: state,
        pack=lambda key, z, estimator: Phase(*z),
        **({} if claims is None else {"claims": claims}),
    )


def normal(key, like):
    return jax.random.normal(key, like.shape, like.dtype)


def verlet(key, x, v, h, estimator):
    gradient = lambda y: estimator.estimate(key, (), y)[0].gradient
    v = v - h / 2 * gradient(x)
    x = x + h * v
    return x, v - h / 2 * gradient(x)


def refreshed(v, u, xi, p):
    return jnp.where(u < p, xi, v)


def after(chance=lambda x, h: 1 - jnp.exp(-h), law=lambda xi: xi, u=lambda key, x: jax.random.uniform(key)):
    def step(key, state, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        x, v = verlet(k1, *state, h, estimator)
        return Phase(x, refreshed(v, u(k2, x), law(normal(k3, v)), chance(x, h)))

    return step


def before(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = state
    v = jax.lax.cond(jax.random.bernoulli(k2, 3 * h), lambda: normal(k3, v), lambda: v)
    return Phase(*verlet(k1, x, v, h, estimator))


def one_of_them(key, state, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, v = verlet(k1, *state, h, estimator)
    i = jax.random.randint(k2, (), 0, x.size)
    fresh = jnp.where(jnp.arange(x.size) == i, jax.random.normal(k3, (), x.dtype), v)
    return Phase(x, jnp.where(jax.random.uniform(k4) < -jnp.expm1(-h * x.size), fresh, v))


def beside_friction(key, state, h, estimator):
    """BAO as usual, and a collision of each velocity at a rate of 2."""
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, v = verlet(k1, *state, h, estimator)
    c = jnp.exp(-h)
    v = c * v + jnp.sqrt(1 - c * c) * normal(k2, v)
    return Phase(x, jnp.where(jax.random.uniform(k3, v.shape) < 2 * h, normal(k4, v), v))


RIGHT = {
    "at a rate": (after(), None),
    "at a fixed chance": (after(lambda x, h: 0.3), None),
    "each by itself": (after(u=lambda key, x: jax.random.uniform(key, x.shape)), None),
    "at a temperature": (after(law=lambda xi: jnp.sqrt(0.5) * xi), COLD),
    "the other side of the coin": (after(lambda x, h: h, u=lambda key, x: 1 - jax.random.uniform(key)), None),
    "before the step": (before, None),
    "one of them": (one_of_them, None),
    "beside friction": (beside_friction, None),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("setting", [1, 2])
def test_right_jumps_are_proved(name, setting):
    step, claims = RIGHT[name]
    proof = prove(phase(step, claims), setting)
    assert proof.verdict == "pass", str(proof)
    assert not proof.limits
    assert any(result.statement == "Hamiltonian" for result in proof.results)


def shared_draw(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = verlet(k1, *state, h, estimator)
    return Phase(x, refreshed(v, jax.random.uniform(k2), jnp.full_like(v, jax.random.normal(k3)), h))


def kicked(key, state, h, estimator):
    """The collision moves the position too."""
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = verlet(k1, *state, h, estimator)
    hit, xi = jax.random.uniform(k2) < h, normal(k3, v)
    return Phase(jnp.where(hit, x + h * xi, x), jnp.where(hit, xi, v))


def draws_the_position(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = verlet(k1, *state, h, estimator)
    return Phase(jnp.where(jax.random.uniform(k2) < h, normal(k3, x), x), v)


def noise_again(key, state, h, estimator):
    """The draw of the collision is the noise of the step, which the position has seen."""
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = state
    xi, c = normal(k2, v), jnp.exp(-h)
    v = c * v + jnp.sqrt(1 - c * c) * xi
    x, v = verlet(k1, x, v, h, estimator)
    return Phase(x, jnp.where(jax.random.uniform(k3) < h, xi, v))


def half_is_old(key, state, h, estimator):
    """A draw before the step, and a move by the velocity that it has replaced."""
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = state
    hit = jax.random.uniform(k2) < h
    y, w = verlet(k1, x, jnp.where(hit, normal(k3, v), v), h, estimator)
    return Phase(jnp.where(hit, y + 0.1 * v, y), w)


def kick_after(key, state, h, estimator):
    """A draw in three steps of ten, and then a kick more than elsewhere."""
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = verlet(k1, *state, h, estimator)
    fresh = normal(k3, v) - h * estimator.estimate(k1, (), x)[0].gradient
    return Phase(x, jnp.where(jax.random.uniform(k2) < 0.3, fresh, v))


def draw_and_noise(key, state, h, estimator):
    """The draw before a step is the noise in it as well."""
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = state
    xi, c = normal(k2, v), jnp.exp(-h)
    v = jnp.where(jax.random.uniform(k3) < 0.3, xi, v)
    return Phase(*verlet(k1, x, c * v + jnp.sqrt(1 - c * c) * xi, h, estimator))


WRONG = {
    "a kick after the draw": kick_after,
    "a draw that is the noise too": draw_and_noise,
    "hot collisions": after(law=lambda xi: 1.3 * xi),
    "a drift": after(law=lambda xi: xi + 0.2),
    "a chance of the position": after(lambda x, h: h * (1 + x @ x)),
    "a coin of the position": after(u=lambda key, x: jax.random.uniform(key) / (1 + x @ x)),
    "moduli": after(law=jnp.abs),
    "a kick of the position": kicked,
    "the position is drawn": draws_the_position,
    "the draw of the noise": noise_again,
    "a move by the old velocity": half_is_old,
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("setting", [1, 2])
def test_wrong_jumps_are_not_proved(name, setting):
    assert prove(phase(WRONG[name]), setting).verdict != "pass"


def test_one_draw_for_two_velocities_is_not_proved():
    assert prove(phase(shared_draw), 2).verdict != "pass"


@pytest.mark.parametrize(("name", "reason"), [("hot collisions", OTHER_LAW), ("a kick of the position", OTHERWISE)])
def test_why(name, reason):
    assert reason in prove(phase(WRONG[name]), 1).reason


def test_jumps_of_the_position_alone_are_no_law_of_it():
    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        y = x - h * estimator.estimate(k1, (), x)[0].gradient + jnp.sqrt(2 * h) * normal(k2, x)
        return jnp.where(jax.random.uniform(k3) < h, normal(jax.random.fold_in(k3, 1), x), y)

    assert prove(simple_sampler(step), 1).verdict != "pass"


def test_what_looks_at_the_old_velocity_in_a_potential_is_no_draw_before_the_step():
    space = Space(Ring(), 2)
    x, v = (space.ring.generator(Coordinate(name, i)) for i, name in enumerate("xv"))
    xi = space.ring.generator(Draw(Normal(), History("key"), 0))
    force = lambda at: space.lift(space.ring.generator(Jet("U", (1,), (x + at,))))
    s, lifted = space.power_of_step(1), space.lift
    end = lambda velocity, at: [lifted(x) + s * lifted(velocity), lifted(velocity) - s * force(at)]
    fresh = {1: Fresh(next(iter(xi.numbers())), space.ring.one)}
    with pytest.raises(Unreadable, match=OTHERWISE):
        without_jumps([x, v], [Way(end(v, v)), Way(end(xi, v), fresh)])
