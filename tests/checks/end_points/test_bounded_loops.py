"""Loops that do not end come back, and those that do are as they were."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.end_points.bounded_loops import MOST, bounded, with_one_turn


def above(key, level):
    """The first number of a walk from 0 that lies above a level, and the steps that it took."""

    def step(carry):
        key, x, n = carry
        key, use = jax.random.split(key)
        return key, x + jnp.abs(jax.random.normal(use)), n + 1

    return jax.lax.while_loop(lambda carry: ~(carry[1] > level), step, (key, jnp.zeros(()), 0))[1:]


def test_a_loop_that_ends_is_as_it_was():
    key = jax.random.key(0)
    assert jax.tree.map(float, jax.jit(bounded(above))(key, 10.0)) == jax.tree.map(float, above(key, 10.0))


def test_a_loop_without_an_end_comes_back():
    _, steps = jax.jit(bounded(above))(jax.random.key(0), jnp.nan)
    assert steps == MOST


def test_a_program_without_loops_is_left_alone():
    assert float(bounded(jnp.sin)(1.0)) == float(jnp.sin(1.0))


def test_one_turn_is_the_first_one():
    def turns(x):
        y = jax.lax.while_loop(lambda y: y < 9.0, lambda y: y * 3.0, x)
        last, each = jax.lax.scan(lambda carry, step: (carry + step, carry), y, jnp.arange(4.0) + 2.0)
        return last, each

    assert jax.tree.map(lambda a: a.tolist(), with_one_turn(turns)(jnp.asarray(1.0))) == (5.0, [3.0] * 4)
