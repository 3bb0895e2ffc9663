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


def test_each_of_a_batch_ends_where_it_would():
    keys, levels = jax.random.split(jax.random.key(0), 3), jnp.array([1.0, 10.0, jnp.nan])
    batch = lambda of: jax.vmap(of)(keys, levels)
    (x, steps), (alone, turns) = jax.jit(lambda: bounded(lambda: batch(above))())(), batch_of_two(keys, levels)
    assert list(steps) == [*turns, MOST]
    assert list(x[:2]) == list(alone)


def batch_of_two(keys, levels):
    found = [above(key, level) for key, level in zip(keys[:2], levels[:2], strict=True)]
    return [x for x, _ in found], [n for _, n in found]


def test_a_program_without_loops_is_left_alone():
    assert float(bounded(jnp.sin)(1.0)) == float(jnp.sin(1.0))


def test_one_turn_is_the_first_one():
    def turns(x):
        y = jax.lax.while_loop(lambda y: y < 9.0, lambda y: y * 3.0, x)
        last, each = jax.lax.scan(lambda carry, step: (carry + step, carry), y, jnp.arange(4.0) + 2.0)
        return last, each

    assert jax.tree.map(lambda a: a.tolist(), with_one_turn(turns)(jnp.asarray(1.0))) == (5.0, [3.0] * 4)
