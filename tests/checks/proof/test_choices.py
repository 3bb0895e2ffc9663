"""Which equations of a program wait for a choice, and which look like one and are none."""

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.proof.reader.choices import choices_first


def program(choose):
    """A choice between two choices of sums."""

    def function(coin, a, b, x, y):
        one = choose(a < 0, x + 1, y + 1)
        two = choose(b < 0, x * 2, y * 2)
        return choose(coin < 0, one, two)

    return jax.make_jaxpr(function)(1.0, 1.0, 1.0, jnp.ones(2), jnp.ones(2)).jaxpr


@jax.jit
def beside(which, x, y):
    return jax.lax.select(which, x, y), x


def passing(which, x, y):
    """A choice by a call that returns an operand as well."""
    chosen, other = beside(which, x, y)
    return chosen + 0 * other


@jax.jit
def first(which, x, y):
    jax.lax.select(which, x, y)
    return x


@pytest.mark.parametrize("choose", [jax.lax.select, jnp.where])
def test_the_outer_choice_is_made_first(choose):
    found = choices_first(program(choose))
    assert len(found) == 1
    assert max(found) == len(program(choose).eqns) - 1


@pytest.mark.parametrize("choose", [passing, first])
def test_a_call_that_returns_an_operand_is_no_choice(choose):
    assert not choices_first(program(choose))


def test_a_choice_whose_sides_are_needed_elsewhere_waits_for_nothing():
    def function(coin, a, x, y):
        one = jnp.where(a < 0, x, y)
        return jnp.where(coin < 0, one, x) + one

    assert not choices_first(jax.make_jaxpr(function)(1.0, 1.0, 1.0, 2.0).jaxpr)
