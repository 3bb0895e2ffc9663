"""Outlines of programs: one for a piece of code at any size, and caches that are known again by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.third_party import Known, filled_in
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.outline import outline
from sgmcmc_verification.samplers.interface.whole_state import Whole
from sgmcmc_verification.targets.euclidean.gaussian import gaussian


def three_times(turn, x):
    return jax.lax.fori_loop(0, 3, lambda i, s: turn(s), x)


def of(function, *shapes):
    return outline(jax.make_jaxpr(function)(*map(jnp.ones, shapes)).jaxpr)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 3 * x - x**2,
        lambda x: x - x.mean(),
        lambda x: jnp.where(x > 0, x, -x) + jax.random.normal(jax.random.key(0), x.shape),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s * 0.7 + i, x),
        lambda x: jnp.concatenate([x[:1], x[1:]]),
    ],
)
def test_the_same_at_all_sizes(function):
    assert len({of(function, (n,)) for n in (3, 5, 50)}) == 1


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (lambda x: 0.9 * x, lambda x: 0.0 * x),
        (lambda x: 0.9 * x, lambda x: 1.0 * x),
        (lambda x: x**2, lambda x: x**3),
        (lambda x: x + jnp.sin(x), lambda x: x + jnp.cos(x)),
        (lambda x: x - jnp.sin(x), lambda x: jnp.sin(x) - x),
        (lambda x: three_times(lambda s: s * 0.7, x), lambda x: three_times(lambda s: s / 2, x)),
        (lambda x: jnp.float32(1) * x.astype(jnp.float32), lambda x: x),
    ],
)  # fmt: skip
def test_other_programs_have_other_outlines(ours, other):
    assert of(ours, (3,)) != of(other, (3,))


def test_constants_that_follow_from_a_size_are_one():
    assert of(lambda x: x * (2.38 / x.size), (3,)) == of(lambda x: x * (2.38 / x.size), (7,))


def step_with(kept_of):
    """A step whose state keeps numbers beside the position: what it keeps of its last noise is `kept_of` that."""

    class Sampler:
        def init(self, key, position, estimator):
            return {"x": position, "kept": jnp.zeros_like(position)}

        def position(self, state):
            return state["x"]

        def step(self, key, state, h, estimator):
            gradient = estimator.estimate(key, (), state["x"])[0].gradient
            noise = jax.random.normal(key, state["x"].shape)
            x = state["x"] - h * gradient + jnp.sqrt(h) * (noise + state["kept"])
            return {"x": x, "kept": kept_of(noise)}

    return Sampler()


@pytest.mark.parametrize(
    "kept_of",
    [
        lambda noise: jnp.where(jnp.arange(noise.size) >= 2, noise, 0.0),  # none of two coordinates
        lambda noise: noise - noise.mean() if noise.size > 1 else noise * 0.0,
        lambda noise: noise * (noise.size > 2),
    ],
)
@pytest.mark.parametrize("order", [(2, 5), (1, 5), (5, 2)])
def test_what_was_no_cache_at_another_size_is_asked_again(kept_of, order):
    known, found = Known(), {}
    for size in order:
        law = gaussian(np.zeros(size), np.diag(np.linspace(1.0, 2.0, size)), f"gaussian-{size}")
        sampler = filled_in(complete(step_with(kept_of)), law, {}, known)
        state = sampler.init(jax.random.key(0), law.example, None)
        found[size] = isinstance(sampler.unpack(state), Whole)
    assert found[5]


def test_a_cache_is_known_again():
    class Cached:
        def init(self, key, position, estimator):
            return position, estimator.estimate(key, (), position)[0].gradient

        def position(self, state):
            return state[0]

        def step(self, key, state, h, estimator):
            x = state[0] - h * state[1] + jnp.sqrt(2 * h) * jax.random.normal(key, state[0].shape)
            return x, estimator.estimate(key, (), x)[0].gradient

    known = Known()
    for size in (2, 3, 50):
        law = gaussian(np.zeros(size), np.diag(np.linspace(1.0, 2.0, size)), f"gaussian-{size}")
        sampler = filled_in(complete(Cached()), law, {}, known)
        z = sampler.unpack(sampler.init(jax.random.key(0), law.example, Exact(law)))
        assert np.shape(z) == (size,)
    assert list(known.caches.values()) == [[1]]
