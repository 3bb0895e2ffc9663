"""Arrays in the place of their entries: the same values, with operations whose number does not grow with the size.

Oracle: the function as it was written, evaluated by JAX.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sgmcmc_verification.checks.programs.rolled import rolled

SIZE = 24
MATRIX = np.random.default_rng(3).normal(size=(SIZE, SIZE)).tolist()


def entries(x):
    """The entries of an array of one axis, one by one."""
    return [lax.squeeze(lax.slice(x, (i,), (i + 1,)), (0,)) for i in range(len(x))]


def joined(numbers):
    """An array of numbers."""
    return lax.concatenate([lax.reshape(number, (1,)) for number in numbers], 0)


def total(numbers):
    """The sum of numbers, from the left."""
    found = jnp.zeros(())
    for number in numbers:
        found = found + number
    return found


def chosen(x):
    """Entries with a test for all of them, and one for each."""
    every = x[0] > 0.1
    return joined([lax.select(every, lax.select(a > 0, a, 2 * a), a * a) for a in entries(x)])


def part_and_whole(x):
    """A sum of which a part is used as well."""
    part = total(entries(x)[:9])
    return part * total([part, *entries(x)[9:]])


FUNCTIONS = {
    "entry by entry": lambda x: joined([jnp.sin(a) * b - 2.0 for a, b in zip(entries(x), entries(2 * x), strict=True)]),
    "backwards": lambda x: joined([-a for a in entries(x)[::-1]]),
    "every second one": lambda x: joined([a**3 for a in entries(x)[::2]]),
    "one unlike the others": lambda x: joined([jnp.exp(a) if i == 7 else a + 1.0 for i, a in enumerate(entries(x))]),
    "one in two unlike": lambda x: joined([jnp.exp(a) if i % 2 else jnp.sin(a) for i, a in enumerate(entries(x))]),
    "numbers of the program": lambda x: joined([a * (0.5 + i) for i, a in enumerate(entries(x))]),
    "the same number": lambda x: joined([a * jnp.tanh(x[0]) for a in entries(x)]),
    "one number alone": lambda x: joined([x[3]] * SIZE),
    "a sum": lambda x: total([a * a for a in entries(x)]),
    "a sum of unlike terms": lambda x: total([a * a if i % 3 else jnp.cos(a) for i, a in enumerate(entries(x))]),
    "a sum of which a part is used": lambda x: (lambda part: part * total([part, *entries(x)[9:]]))(
        total(entries(x)[:9])
    ),
    "a matrix": lambda x: joined(
        [total([float(m) * a for m, a in zip(row, entries(x), strict=True)]) for row in MATRIX]
    ),
    "choices": chosen,
    "a function in between": lambda x: joined([a + x[i] for i, a in enumerate(entries(jnp.cumsum(x)))]),
    "sorted": lambda x: joined(entries(lax.sort((x, 2 * x), num_keys=1)[1])),
    "whole numbers": lambda x: joined([(a > 0).astype(int) + 3 for a in entries(x)]),
    "a tree": lambda x: {"a": x[0], "b": (joined(entries(x)), 1.0)},
}
FEW = {"one in two unlike": 200, "a sum of unlike terms": 200, "a sum of which a part is used": 60}
"""Operations at most, where they are more than 30."""


def same(found, expected):
    """True for trees of the same arrays, up to round-off."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert jnp.asarray(one).dtype == jnp.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    return True


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_values_are_those_of_the_function_in_few_operations(name):
    function = FUNCTIONS[name]
    x = jnp.asarray(np.random.default_rng(5).normal(size=SIZE))
    assert same(jax.jit(rolled(function))(x), function(x))
    assert len(jax.make_jaxpr(rolled(function))(x).eqns) <= FEW.get(name, 30)


def test_runs_at_once_are_those_of_each():
    x = jnp.asarray(np.random.default_rng(6).normal(size=(5, SIZE)))
    for name in ("entry by entry", "a matrix", "choices"):
        function = FUNCTIONS[name]
        assert same(jax.vmap(rolled(function))(x), jnp.stack([function(row) for row in x]))


def test_draws_of_a_key_are_kept_and_made_once():
    def function(key, x):
        again = [jax.random.normal(jax.random.fold_in(key, 1)) for _ in range(3)]
        other = jax.random.normal(jax.random.fold_in(key, 2), x.shape)
        return joined([a * b + again[i % 3] for i, (a, b) in enumerate(zip(entries(x), entries(other), strict=True))])

    key, x = jax.random.key(2), jnp.arange(float(SIZE))
    assert same(rolled(function)(key, x), function(key, x))
    names = [equation.primitive.name for equation in jax.make_jaxpr(rolled(function))(key, x).eqns]
    assert names.count("random_fold_in") == 2


def test_what_has_an_effect_is_left_as_it_is(capfd):
    def function(x):
        jax.debug.print("seen {}", x[0])
        return joined(entries(x))

    assert same(rolled(function)(jnp.arange(3.0)), jnp.arange(3.0))
    jax.effects_barrier()
    assert "seen 0.0" in capfd.readouterr().out
