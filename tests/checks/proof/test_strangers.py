"""Samplers as strangers write them: no wrong one passes, no right one fails."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.interface.claims import Claims, ExactLaw, Source
from sgmcmc_verification.samplers.simple import simple_sampler


def gradient(estimator, x, key=None):
    return estimator.estimate(jax.random.key(0) if key is None else key, (), x)[0].gradient


def potential(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


def langevin(key, x, h, estimator):
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def rademacher(key, x, h, estimator):
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.rademacher(key, x.shape, x.dtype)


def uniform(key, x, h, estimator):
    noise = jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0)
    return x - h * gradient(estimator, x) + jnp.sqrt(6 * h) * noise


def heun(key, x, h, estimator):
    noise = jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)
    guess = x - h * gradient(estimator, x) + noise
    return x - h / 2 * (gradient(estimator, x) + gradient(estimator, guess)) + noise


def tamed(key, x, h, estimator):
    g = gradient(estimator, x)
    return x - h * g / (1 + h * jnp.sqrt(1 + g @ g)) + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def walk(key, x, h, estimator):
    move, decide = jax.random.split(key)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(move, x.shape, x.dtype)
    accept = jnp.log(jax.random.uniform(decide, (), x.dtype)) < potential(estimator, x) - potential(estimator, y)
    return jnp.where(accept, y, x)


EXACT = Claims(Source("", "none"), ExactLaw())
RIGHT = {
    "langevin": simple_sampler(langevin),
    "rademacher noise": simple_sampler(rademacher),
    "uniform noise": simple_sampler(uniform),
    "heun": simple_sampler(heun),
    "tamed": simple_sampler(tamed),
    "random walk": simple_sampler(walk, claims=EXACT, needs=("potential",)),
}


def averaged_init(key, x, estimator):
    return {"position": x, "average": jnp.zeros_like(x)}


def averaged(key, state, h, estimator):
    """RMSprop without its divergence, in a number that `unpack` does not show."""
    x, g = state["position"], gradient(estimator, state["position"])
    average = 0.9 * state["average"] + 0.1 * g * g
    scale = 1 / (0.1 + jnp.sqrt(average))
    noise = jnp.sqrt(2 * h * scale) * jax.random.normal(key, x.shape, x.dtype)
    return {"position": x - h * scale * g + noise, "average": average}


def counted_init(key, x, estimator):
    return {"position": x, "count": jnp.zeros((), jnp.int32)}


def counted(key, state, h, estimator):
    """Colder on every other step."""
    x = state["position"]
    warm = jnp.where(state["count"] % 2 == 0, 1.0, 0.5)
    noise = jnp.sqrt(2 * h * warm) * jax.random.normal(key, x.shape, x.dtype)
    return {"position": x - h * gradient(estimator, x) + noise, "count": state["count"] + 1}


def constant_key(key, x, h, estimator):
    return langevin(jax.random.key(7), x, h, estimator)


def stale_init(key, x, estimator):
    return {"position": x, "energy": potential(estimator, x)}


def stale(key, state, h, estimator):
    """Keeps the energy of the proposal where it was rejected."""
    move, decide = jax.random.split(key)
    x = state["position"]
    y = x + jnp.sqrt(2 * h) * jax.random.normal(move, x.shape, x.dtype)
    energy = potential(estimator, y)
    accept = jnp.log(jax.random.uniform(decide, (), x.dtype)) < state["energy"] - energy
    return {"position": jnp.where(accept, y, x), "energy": energy}


def clipped(key, x, h, estimator):
    g = jnp.clip(gradient(estimator, x), -10, 10)
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape, x.dtype)


def half_noise(key, x, h, estimator):
    return x - h * gradient(estimator, x) + jnp.sqrt(h) * jax.random.normal(key, x.shape, x.dtype)


def one_draw(key, x, h, estimator):
    return x - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.normal(key, (), x.dtype)


def standing_still(key, x, h, estimator):
    return x + 0 * gradient(estimator, x)


def wrong_way(key, x, h, estimator):
    """Accepts what should be rejected."""
    move, decide = jax.random.split(key)
    y = x + jnp.sqrt(2 * h) * jax.random.normal(move, x.shape, x.dtype)
    ratio = potential(estimator, x) - potential(estimator, y)
    return jnp.where(jax.random.uniform(decide, (), x.dtype) > jnp.exp(jnp.minimum(ratio, 0)), y, x)


def slow_far_away(key, x, h, estimator):
    """A hundred times slower where the gradient is large: each region is right, their boundary is not."""
    g = gradient(estimator, x)
    own = jnp.where(g @ g > 100.0, h / 100, h)
    return x - own * g + jnp.sqrt(2 * own) * jax.random.normal(key, x.shape, x.dtype)


def split_and_folded(key, x, h, estimator):
    """The first child of a split is the fold by 0: one draw for two noises."""
    first, _ = jax.random.split(key)
    second = jax.random.fold_in(key, 0)
    noise = jax.random.normal(first, x.shape, x.dtype) + jax.random.normal(second, x.shape, x.dtype)
    return x - h * gradient(estimator, x) + jnp.sqrt(h) * noise


WRONG = {
    "average out of sight": simple_sampler(averaged, init=averaged_init),
    "counter": simple_sampler(counted, init=counted_init),
    "constant key": simple_sampler(constant_key),
    "stale energy": simple_sampler(stale, init=stale_init, claims=EXACT, needs=("potential",)),
    "clipped": simple_sampler(clipped),
    "half of the noise": simple_sampler(half_noise),
    "one draw": simple_sampler(one_draw),
    "standing still": simple_sampler(standing_still),
    "accepts the wrong way": simple_sampler(wrong_way, claims=EXACT, needs=("potential",)),
    "slow far away": simple_sampler(slow_far_away),
    "one key twice": simple_sampler(split_and_folded),
}
REFUTED = {"half of the noise", "one draw", "one key twice"}
"""Those that fail by themselves; the others are undecided, with a reason."""


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_sampler_passes(name):
    proof = prove(RIGHT[name], 2)
    assert proof.verdict == "pass", str(proof)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sampler_does_not_pass(name):
    proof = prove(WRONG[name], 2)
    assert proof.verdict == ("fail" if name in REFUTED else "undecided"), str(proof)
    assert proof.reason


def test_reasons_name_what_is_hidden_and_where():
    assert "hidden state" in prove(WRONG["average out of sight"], 1).reason
    assert "test_strangers.py:" in prove(WRONG["clipped"], 1).reason or any(
        "test_strangers.py:" in condition for r in prove(WRONG["clipped"], 1).results for condition in r.region
    )
    assert "same in every step" in str(prove(WRONG["constant key"], 1))


def test_a_sampler_that_cannot_be_read_is_undecided_with_the_place():
    def step(key, x, h, estimator):
        return jnp.sort(x) - h * gradient(estimator, x) + jnp.sqrt(2 * h) * jax.random.normal(key, x.shape)

    proof = prove(simple_sampler(step), 2)
    assert proof.verdict == "undecided"
    assert "sort" in proof.reason
    assert "test_strangers.py:" in proof.reason


def test_a_limit_that_binds_at_a_finite_step_size_is_told_and_not_judged():
    def step(key, x, h, estimator):
        noise = jnp.sqrt(2 * jnp.minimum(h, 0.01)) * jax.random.normal(key, x.shape, x.dtype)
        return x - h * gradient(estimator, x) + noise

    proof = prove(simple_sampler(step), 1)
    assert proof.verdict == "pass"
    assert any("1/100" in limit and "test_strangers.py:" in limit for limit in proof.limits)
