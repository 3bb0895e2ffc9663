"""Keys that are consumed twice, in a step, in two steps or along a run, are found; keys that are used once pass."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.check import Inconclusive, NotApplicable
from sgmcmc_verification.checks.tiers.premises.fresh_draws import fresh_draws
from sgmcmc_verification.checks.tracing.noise_tape import Noise, record
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from tests.helpers.strangers import Kept, Langevin, decide, gradient, normal

PLANE = "gaussian-correlated-2d"


def memoryless(draw):
    return Langevin(lambda key, x, count, g: (draw(key, x), count))


@jax.jit
def _normal(key, shape=()):
    """Half a normal under the name of one of jax.random's functions."""
    return 0.5 * jax.random.normal(key, (2,))


fold = jax.random.fold_in
leaf = lambda key, i: jax.random.normal(key)
REPEATED = {
    "one coordinate from a constant key": lambda k, x: jnp.stack([leaf(k, 0), leaf(jax.random.key(1), 1)]),
    "keys folded with i % 1": lambda k, x: jnp.stack([leaf(fold(k, i % 1), i) for i in range(2)]),
    "keys s + i": lambda k, x: jnp.stack(
        [leaf(jax.random.wrap_key_data(jax.random.key_data(k).at[-1].add(jnp.uint32(i))), i) for i in range(2)]
    ),
    "vmapped draws of one key": lambda k, x: jax.vmap(jax.random.normal)(jnp.stack([k, k])),
    "the last word of the key is lost": lambda k, x: normal(
        jax.random.wrap_key_data(jax.random.key_data(k).at[-1].set(7)), x
    ),
    "the last bit is lost": lambda k, x: normal(
        jax.random.wrap_key_data(jax.random.key_data(k) & jnp.uint32(0xFFFFFFFE)), x
    ),
    "half of a word is lost": lambda k, x: normal(
        jax.random.wrap_key_data(jax.random.key_data(k).at[0].set(jax.random.key_data(k)[0] & jnp.uint32(0xFFFF))), x
    ),
    "a seed of few values": lambda k, x: normal(jax.random.key(jax.random.key_data(k)[-1] % 3), x),
}


def either(k, x, first, second, coin=None):
    """One of two draws, by a coin with a key of its own, or another one."""
    own, rest = jax.random.split(k)
    heads = jax.random.bernoulli(own if coin is None else coin)
    return jax.lax.cond(heads, lambda: first(rest, own), lambda: second(rest, own))


REPEATED |= {
    "the key of the coin in a branch": lambda k, x: either(k, x, lambda a, b: normal(b, x), lambda a, b: normal(a, x)),
    "a constant key in a branch": lambda k, x: either(
        k, x, lambda a, b: normal(jax.random.key(3), x), lambda a, b: normal(a, x)
    ),
    "the key of a branch beside it": lambda k, x: (
        either(k, x, lambda a, b: normal(a, x), lambda a, b: x) + normal(jax.random.split(k)[1], x)
    ),
    "one key in two conds": lambda k, x: (
        either(k, x, lambda a, b: normal(a, x), lambda a, b: x, fold(k, 5))
        + either(k, x, lambda a, b: x, lambda a, b: normal(a, x), fold(k, 6))
    ),
    "one key twice in a branch": lambda k, x: either(
        k, x, lambda a, b: normal(a, x) + jax.random.uniform(a), lambda a, b: normal(a, x)
    ),
}
FRESH = {
    "a draw in a branch": lambda k, x: either(k, x, lambda a, b: normal(a, x), lambda a, b: x),
    "one key in both branches": lambda k, x: either(
        k, x, lambda a, b: normal(a, x), lambda a, b: 2 * jax.random.uniform(a, x.shape)
    ),
    "branches in branches": lambda k, x: either(
        k, x, lambda a, b: either(a, x, lambda c, d: normal(c, x), lambda c, d: x), lambda a, b: normal(a, x)
    ),
    "a switch": lambda k, x: jax.lax.switch(
        jax.random.randint(fold(k, 0), (), 0, 3),
        [lambda: x, lambda: normal(fold(k, 1), x), lambda: jax.random.uniform(fold(k, 1), x.shape)],
    ),
    "a draw of the same key that nobody reads": lambda k, x: (normal(k, x), jax.random.uniform(k))[0],
    "one of a constant key that nobody reads": lambda k, x: (normal(k, x), leaf(jax.random.key(1), 0))[0],
    "one key, one draw": normal,
    "split": lambda k, x: jnp.stack([leaf(a, 0) for a in jax.random.split(k)]),
    "folded with the index": lambda k, x: jnp.stack([leaf(fold(k, i), i) for i in range(2)]),
    "vmapped draws of split keys": lambda k, x: jax.vmap(jax.random.normal)(jax.random.split(k)),
    "a scan that splits": lambda k, x: jax.lax.scan(
        lambda c, _: ((b := jax.random.split(c))[0], jax.random.normal(b[1])), k, None, length=2
    )[1],
    "normals and a uniform": lambda k, x: (
        normal((b := jax.random.split(k))[0], x) * jnp.sign(jax.random.uniform(b[1]) - 0.5)
    ),
    "a seed of raw bits": lambda k, x: normal(jax.random.key(jax.random.bits(k)), x),
    "raw bits beside normals": lambda k, x: normal((b := jax.random.split(k))[0], x) + 0 * jax.random.bits(b[1]),
}


@pytest.mark.parametrize("name", REPEATED)
def test_keys_that_repeat_are_found(name):
    finding = decide(fresh_draws, memoryless(REPEATED[name]), PLANE)
    assert finding.verdict == "fail", finding.reason


@pytest.mark.parametrize("name", FRESH)
def test_keys_that_are_used_once_pass(name):
    finding = decide(fresh_draws, memoryless(FRESH[name]), PLANE)
    assert finding.verdict == "pass", finding.reason


def test_the_place_of_a_repeated_draw_is_named():
    candidate = memoryless(REPEATED["one coordinate from a constant key"])
    assert "test_fresh_draws.py:" in decide(fresh_draws, candidate, PLANE).reason


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        ("one coordinate from a constant key", "is the same for different keys of the step"),
        ("vmapped draws of one key", "is repeated for several coordinates"),
        ("keys s + i", "in another step"),
    ],
)
def test_the_reason_says_between_what_a_key_is_shared(draw, words):
    assert words in decide(fresh_draws, memoryless(REPEATED[draw]), PLANE).reason


def test_a_gradient_whose_key_never_changes_is_found_although_an_exact_one_draws_nothing():
    @dataclass(frozen=True)
    class SameBatch(SGLD):
        def step(self, key, state, step_size, estimator):
            fixed = lambda key, estate, position: estimator.estimate(jax.random.key(3), estate, position)
            return super().step(key, state, step_size, SimpleNamespace(estimate=fixed))

    same = decide(fresh_draws, SameBatch(), PLANE)
    assert same.verdict == "fail"
    assert "gradient, normal samplers/estimators/basic.py" in same.reason
    assert decide(fresh_draws, SGLD(), PLANE).verdict == "pass"


def test_a_function_of_another_author_under_the_name_of_a_draw_is_walked_into():
    program = record(lambda key: _normal(key), jax.random.key(0))
    noise = program.draws
    assert [(d.kind, d.shape) for d in noise] == [("normal", (2,))]
    value = program(Noise(jnp.asarray([1.0, -2.0]), jnp.zeros(0), jnp.zeros(0, int)), jax.random.key(0))
    assert np.allclose(value, [0.5, -1.0])


@dataclass
class Stored:
    """SGLD that draws from a key in its state: `advance(key) -> (key of the draw, next key)`."""

    advance: Any
    raw: bool = False

    def init(self, key, position, estimator):
        return Kept(position, jax.random.key_data(key) if self.raw else key)

    def step(self, key, state, step_size, estimator):
        draw, kept = self.advance(state.kept)
        x = state.position
        return Kept(x - step_size * gradient(estimator, x, key) + jnp.sqrt(2 * step_size) * normal(draw, x), kept)


split = lambda k: tuple(jax.random.split(k))
AGAIN = {
    "never changed": Stored(lambda k: (k, k)),
    "made anew from a seed": Stored(lambda k: (k, jax.random.key(3))),
    "folded with 0 or 1, in turns": Stored(lambda k: (k, jax.random.wrap_key_data(jax.random.key_data(k) ^ 1))),
    "advanced, and draws from a constant": Stored(lambda k: (jax.random.key(1), fold(k, 1))),
    "a raw one that is never changed": Stored(lambda k: (k, k), raw=True),
}
ONWARD = {
    "split": Stored(split),
    "a raw one that is split": Stored(split, raw=True),
    "folded with the step, from one stem": Stored(lambda k: (fold(k, 0), fold(k, 1))),
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_stored_key_that_comes_back_is_found(name):
    finding = decide(fresh_draws, AGAIN[name], PLANE)
    assert finding.verdict == "fail", finding.reason


@pytest.mark.parametrize("name", ONWARD)
def test_a_stored_key_that_goes_on_passes(name):
    finding = decide(fresh_draws, ONWARD[name], PLANE)
    assert finding.verdict == "pass", finding.reason


def test_a_stored_key_that_nothing_draws_from_may_stay():
    """As that of an adaptation that is switched off: a kernel of numpyro was said to be wrong for it."""

    class Beside(Stored):
        def step(self, key, state, step_size, estimator):
            a, b = jax.random.split(key)
            x = state.position
            new = x - step_size * gradient(estimator, x, a) + jnp.sqrt(2 * step_size) * normal(b, x)
            return Kept(new, state.kept)

    finding = decide(fresh_draws, Beside(None), PLANE)
    assert finding.verdict == "pass", finding.reason


def test_a_key_that_init_has_consumed_is_found():
    """It draws a momentum from the key that it then stores, and the first step draws from that one."""

    class Twice(Stored):
        def init(self, key, position, estimator):
            return Kept(position + 0 * normal(key, position), jax.random.key(7))

        def step(self, key, state, step_size, estimator):
            x = state.position
            noise = normal(jax.random.key(7), x) + normal(key, x)
            return Kept(x - step_size * gradient(estimator, x) + jnp.sqrt(step_size) * noise, state.kept)

    finding = decide(fresh_draws, Twice(split), PLANE)
    assert finding.verdict == "fail", finding.reason


def test_draws_inside_of_a_loop_of_unknown_length_are_inconclusive():
    def rejection(key, x):
        body = lambda c: (fold(c[0], 1), jax.random.normal(c[0], x.shape))
        return jax.lax.while_loop(lambda c: jnp.any(jnp.abs(c[1]) > 6), body, (key, 9.0 + 0 * x))[1]

    with pytest.raises(Inconclusive, match="while"):
        decide(fresh_draws, memoryless(rejection), PLANE)


def test_a_host_sampler_has_no_keys():
    class Host:
        backend = "host"

        def step(self, rng, x, step_size, estimator):
            return x + rng.normal(size=np.shape(x))

    with pytest.raises(NotApplicable, match="no keys"):
        decide(fresh_draws, Host(), PLANE)
