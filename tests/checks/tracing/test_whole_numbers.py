"""Whole numbers of a program: those of loops and of functions within it, none of its keys; words."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.tracing.whole_numbers import of_program, of_step, words_of_step


def test_numbers_of_inner_programs_and_products_are_found_and_a_key_is_none():
    key = jax.random.key(3)

    def step(count):
        inner = jax.jit(lambda c: jnp.where(c // 1000 > 50, 1.0, 0.0))
        return inner(count) + jax.random.normal(key)

    assert {999, 1000, 1001, 50_000} <= set(of_program(step, jnp.asarray(0)))


def test_numbers_of_python_are_found_with_what_it_encloses_and_without_small_ones():
    limit = 4321

    def step(rng, state, h):
        return state if state < limit else state + 17

    assert {17, 4320, 4321, 4322} <= set(of_step(step))
    assert 1 not in of_step(lambda rng, state, h: state + 1)


def test_bounds_of_types_are_left_out():
    def step(rng, state, h):
        return min(state + 1, 2147483647) % 4294967295

    assert not any(n > 2**30 for n in of_step(step))


FROZEN = ("bias", "embed")


def test_words_are_those_that_may_name_parameters():
    def step(rng, state, h):
        """One line, which is no name."""
        if "kernel" in state or any(name in state for name in FROZEN):
            return state["log scale"] + len("kernel")
        return 17

    assert set(words_of_step(step)) == {"kernel", "bias", "embed"}
