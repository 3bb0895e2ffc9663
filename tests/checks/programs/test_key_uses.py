"""Keys that are consumed twice when a program runs, where indices that are computed leave its text open."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.programs.key_uses import consumes_twice, indexes_keys
from sgmcmc_verification.checks.tiers.contract import key_discipline
from tests.helpers.strangers import decide, gradient


def in_turn(key):
    keys = jax.random.split(key, 4)
    return jax.lax.fori_loop(0, 4, lambda i, x: x + jax.random.normal(keys[i]), 0.0)


def until_a_bound(key):
    keys = jax.random.split(key, 9)
    go_on = lambda c: (c[0] < 8) & (c[1] < 2.0)
    step = lambda c: (c[0] + 1, c[1] + jax.random.uniform(keys[c[0]]))
    return jax.lax.while_loop(go_on, step, (0, jax.random.uniform(keys[8])))[1]


def of_the_gamma_law(key):
    keys = jax.random.split(key, 4)
    return jax.lax.fori_loop(0, 4, lambda i, x: x + jax.random.gamma(keys[i], 3.0), 0.0)


def pairs(key):
    """Two turns for each key."""
    keys = jax.random.split(key, 4)
    return jax.lax.fori_loop(0, 4, lambda i, x: x + jax.random.normal(keys[i // 2]), 0.0)


def last_again(key):
    keys = jax.random.split(key, 4)
    return jax.lax.fori_loop(0, 4, lambda i, x: x + jax.random.normal(keys[i]), jax.random.normal(keys[3]))


def split_and_drawn_from(key):
    keys = jax.random.split(key, 4)
    body = lambda i, x: x + jax.random.normal(keys[i]) + jax.random.normal(jax.random.split(keys[i])[0])
    return jax.lax.fori_loop(0, 4, body, 0.0)


def wrapped(key):
    """The index is out of range in the last turn, and is moved to the key before."""
    keys = jax.random.split(key, 4)
    return jax.lax.fori_loop(0, 5, lambda i, x: x + jax.random.normal(keys[i]), 0.0)


RIGHT, WRONG = (in_turn, until_a_bound, of_the_gamma_law), (pairs, last_again, split_and_drawn_from, wrapped)


@pytest.mark.parametrize("function", [*RIGHT, *WRONG], ids=lambda function: function.__name__)
def test_what_runs_tells_which_keys_are_consumed(function):
    program = jax.make_jaxpr(function)(jax.random.key(0))
    assert indexes_keys(program.jaxpr)
    assert consumes_twice(program, [jax.random.key(5)]) is (function in WRONG)


def test_a_program_that_takes_long_is_left_open():
    def function(key):
        keys = jax.random.split(key, 4)
        return jax.lax.fori_loop(0, 20_000, lambda i, x: x + jax.random.normal(keys[i]), 0.0)

    assert consumes_twice(jax.make_jaxpr(function)(jax.random.key(0)), [jax.random.key(5)]) is None


@pytest.mark.parametrize("function", [*RIGHT, *WRONG], ids=lambda function: function.__name__)
@pytest.mark.parametrize("batched", [False, True])
def test_the_verdict_on_a_sampler(function, batched):
    class Sampler:
        def step(self, key, x, step_size, estimator):
            noise = jax.vmap(function)(jax.random.split(key, x.size)) if batched else function(key) * jnp.ones(1)
            return x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * noise.astype(x.dtype)

    found = decide(key_discipline, Sampler())
    assert found.verdict == ("fail" if function in WRONG else "pass"), found.reason
