"""Branches that numbers of a program decide are taken, all others stay, and no value changes.

Oracle: the program as it was traced, run with the same key.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

from sgmcmc_verification.checks.programs.decided import TURNS, decided
from sgmcmc_verification.checks.programs.operations import operation_names
from sgmcmc_verification.checks.tracing.noise_tape import record

KEY, X = jax.random.key(5), jnp.array([0.3, -1.2])


def noise(key, used, block):
    """The block of noise, drawn anew where it is used up, and its row."""
    anew = used >= len(block)
    block = jax.lax.cond(anew, lambda k: jax.random.normal(k, block.shape), lambda k: block, key)
    used = jnp.where(anew, 0, used)
    return block[used], used + 1, block


def steps(begin, count, size=3, jit=False, loop=False):
    """key, x -> x after steps whose noise is drawn ahead, the first of them from row `begin`."""

    def one(state, key):
        x, used, block = state
        row, used, block = noise(key, used, block)
        return (0.9 * x + row, used, block), x

    def run(key, x):
        state = x, jnp.asarray(begin, jnp.int32), jnp.ones((size, *x.shape))
        keys = jax.random.split(key, count)
        if loop:
            state, path = jax.lax.scan(one, state, keys)
            return state[0] + path.sum(axis=0)
        each = jax.jit(one) if jit else one
        for k in keys:
            state, _ = each(state, k)
        return state[0]

    return run


def draws(jaxpr):
    """True for a program that draws."""
    return "random_bits" in [*operation_names(jaxpr)]


DECIDED = {
    "at the start": (steps(3, 1), 3),
    "never": (steps(0, 3), 0),
    "after some steps": (steps(1, 4), 3),
    "in functions": (steps(2, 5, jit=True), 6),
    "in the turns of a loop": (steps(0, 7, loop=True), 6),
}


@pytest.mark.parametrize("name", DECIDED)
def test_branches_that_a_count_decides_are_taken(name):
    run, rows = DECIDED[name]
    before = jax.make_jaxpr(run)(KEY, X)
    after = decided(before, draws)
    assert "cond" in [*operation_names(before.jaxpr)]
    assert "cond" not in [*operation_names(after.jaxpr)]
    ours, theirs = (np.asarray(core.jaxpr_as_fun(each)(KEY, X)[0]) for each in (after, before))
    assert np.array_equal(ours, theirs)
    tape = record(run, KEY, X)
    assert (tape.unintercepted, tape.count("normal")) == ((), 2 * rows)


UNDECIDED = {
    "by a number of the state": lambda key, x: jax.lax.cond(
        x[0] > 0, lambda k: jax.random.normal(k, x.shape), lambda k: x, key
    ),
    "by a draw": lambda key, x: jax.lax.cond(
        jax.random.uniform(key) < 0.5, lambda k: jax.random.normal(k, x.shape), lambda k: x, key
    ),
    "in a long loop": steps(0, TURNS + 1, loop=True),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_branches_that_something_else_decides_stay(name):
    program = jax.make_jaxpr(UNDECIDED[name])(KEY, X)
    assert "cond" in [*operation_names(decided(program, draws).jaxpr)]
    assert record(UNDECIDED[name], KEY, X).unintercepted


def test_a_program_without_such_a_branch_is_left_alone():
    plain = jax.make_jaxpr(lambda key, x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x) + jax.random.normal(key))(KEY, X)
    assert decided(plain, draws) is plain


def test_places_of_the_code_stay():
    program = decided(jax.make_jaxpr(steps(3, 1))(KEY, X), draws)
    files = {frame.file_name for e in program.jaxpr.eqns for frame in e.source_info.traceback.frames}
    assert __file__ in files
