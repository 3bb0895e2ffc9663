"""Mutation operators of premises: each edit is compiled, run, and does to numbers what its name says."""

import ast
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.mutation import clock
from sgmcmc_verification.checks.mutation.catalogue import catalogue
from sgmcmc_verification.checks.mutation.equivalence import proof
from sgmcmc_verification.checks.mutation.operators import OPERATORS
from sgmcmc_verification.checks.mutation.operators.tree import Scope, substitute
from sgmcmc_verification.checks.mutation.program import further_settings, settings
from sgmcmc_verification.checks.mutation.trial import Runner
from sgmcmc_verification.samplers.entry import DETERMINISTIC_TIERS
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.from_step import PositionState
from sgmcmc_verification.samplers.registry import sampler_row
from sgmcmc_verification.targets.registry import target

STEP = """
def step(self, key, state, h):
    noise_key, other_key = jax.random.split(key)
    noise = normal_like(noise_key, state.position)
    move = lambda x, g, n: x - h * g + self.temperature * n
    return jax.tree.map(move, state.position, state.gradient, noise)
"""
POSITION = {"a": np.full(12, 0.0), "b": np.zeros((2, 3))}
GRADIENT = {"a": np.full(12, 1.0), "b": np.full((2, 3), -80.0)}
NOISE = {"a": np.arange(1.0, 13.0), "b": -np.arange(1.0, 7.0).reshape(2, 3)}


def changed(operator: str, source: str, **facts) -> list[str]:
    """The sources of a function after each edit of an operator."""
    module = ast.parse(source)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    scope = Scope(function, facts.pop("options", {}), {}, **facts)
    trees = [substitute(module, edit.swaps) for edit in OPERATORS[operator](scope)]
    return [ast.unparse(ast.fix_missing_locations(tree)) for tree in trees]


def call(source: str, name: str, *arguments, **names):
    """The result of a function of a source, with some names defined."""
    space = {"jax": jax, "jnp": jnp, "np": np, **names}
    exec(source, space)
    return space[name](*arguments)


def steps(operator: str, noise=NOISE, position=POSITION, **facts) -> list:
    """What the changed steps return for step size 1, a temperature of 2 and given draws, as trees of NumPy arrays."""
    state = SimpleNamespace(position=position, gradient=GRADIENT)
    sampler = SimpleNamespace(temperature=2.0)
    draw = lambda key, tree: noise
    found = [
        call(s, "step", sampler, jax.random.key(1), state, 1.0, normal_like=draw)
        for s in changed(operator, STEP, **facts)
    ]
    return [jax.tree.map(np.asarray, each) for each in found]


def moved(noise=NOISE, gradient=GRADIENT, temperature=2.0):
    """x - g + T n."""
    return jax.tree.map(lambda x, g, n: x - g + temperature * n, POSITION, gradient, noise)


HALVED = {"a": NOISE["a"].astype(np.float32), "b": NOISE["b"]}
"""Draws of which one leaf is of single precision."""


@pytest.mark.parametrize(
    ("operator", "given", "expected"),
    [
        ("clipped-draw", NOISE, moved(jax.tree.map(lambda n: np.clip(n, -4, 4), NOISE))),
        ("one-for-all", NOISE, moved({"a": np.full(12, 1.0), "b": np.full((2, 3), -1.0)})),
        ("one-for-rows", NOISE, moved({"a": NOISE["a"], "b": -np.array([[1.0, 2, 3], [1, 2, 3]])})),
        ("first-coordinates", NOISE, moved({"a": np.append(np.arange(1.0, 11.0), [0, 0]), "b": NOISE["b"]})),
        ("later-leaves", NOISE, moved({"a": NOISE["a"], "b": NOISE["b"] / 2})),
        ("half-in-single", HALVED, moved({"a": NOISE["a"] / 2, "b": NOISE["b"]})),
        ("guarded-gradient", NOISE, moved(gradient={"a": GRADIENT["a"], "b": np.full((2, 3), -50.0)})),
    ],
)
def test_the_changed_step_makes_the_mistake_that_its_operator_is_named_after(operator, given, expected):
    (found,) = steps(operator, given)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_a_number_loses_its_digits_where_it_is_used():
    """1 + 2^-9 has nine digits after the point, bfloat16 has seven; shapes and the gradient have none to lose."""
    fine = jax.tree.map(lambda x: np.full_like(x, 1 + 2.0**-9), POSITION)
    found = steps("lost-digits", NOISE, fine)
    assert [float(each["a"][0] - moved()["a"][0]) for each in found] == [1 + 2.0**-9, 1.0, 1 + 2.0**-9]


def test_an_option_is_squared_or_inverted():
    found = steps("distorted-option", options={"temperature": 1.0})
    for each, temperature in zip(found, (4.0, 0.5), strict=True):
        jax.tree.map(np.testing.assert_array_equal, each, moved(temperature=temperature))
    assert changed("distorted-option", STEP, options={"temperature": 5}) == []  # a count is no such option


def test_a_key_is_the_same_in_every_step():
    seen = []
    draw = lambda key, tree: seen.append(key) or NOISE
    for source in changed("constant-key", STEP):
        state = SimpleNamespace(position=POSITION, gradient=GRADIENT)
        call(source, "step", SimpleNamespace(temperature=2.0), jax.random.key(1), state, 1.0, normal_like=draw)
    assert [jax.random.key_data(key).tolist() for key in seen] == [jax.random.key_data(jax.random.key(0)).tolist()]


class Cached(NamedTuple):
    """A point, a number that goes with it, and the state of an estimator."""

    position: str
    gradient: str
    estate: str


def test_a_field_of_the_state_goes_with_the_other_point():
    source = "def step(state, end):\n    return accept(1, 2, end, state._replace(estate=end.estate))"
    old, new = Cached("x", "at x", "old"), Cached("y", "at y", "new")
    rejected = lambda key, ratio, proposal, current: current
    sources = changed("kept-cache", source, states={"state": Cached._fields})
    found = [call(each, "step", old, new, accept=rejected) for each in sources]
    assert found == [("y", "at x", "new"), ("x", "at y", "new"), ("x", "at x", "new"), ("x", "at x", "new")]


def test_sums_over_data_are_scaled_wrongly():
    """prior + (N / n) sum = 3 + (10 / 5) 7 = 17."""
    source = """
def gradient(self, prior, batch):
    scale = self.size / self.batch_size
    return prior + scale * batch
"""
    found = [
        call(each, "gradient", SimpleNamespace(size=10, batch_size=5), 3.0, 7.0)
        for each in changed("data-scale", source)
    ]
    assert found == [3 + 7 / 2, 3 + 7, 2 * 3 + 2 * 7]


def test_a_count_stops_the_chain():
    row = sampler_row("sgld")
    (wrong,) = [m for m in catalogue(row) if m.operator == "hidden-clock"]
    law = target("gaussian-1d-scaled")
    right, stopping = (each.build(law) for each in (row, wrong.row(row)))
    estimator, key = Exact(law), jax.random.key(1)
    state = stopping.init(jax.random.key(0), law.example, estimator)
    moves = stopping.step(key, state._replace(count=jnp.int32(clock.STEPS - 1)), 0.1, estimator)
    expected = right.step(key, PositionState(law.example, ()), 0.1, estimator).position
    np.testing.assert_array_equal(stopping.position(moves), expected)
    assert moves.count == clock.STEPS
    np.testing.assert_array_equal(stopping.position(stopping.step(key, moves, 0.1, estimator)), expected)


def mutant(name: str, operator: str):
    """The first mutant of a sampler by an operator, in its step."""
    return next(m for m in catalogue(sampler_row(name)) if m.operator == operator and m.place.qualname.endswith("step"))


@pytest.mark.parametrize(("name", "operator", "further"), [("sgld", "one-for-rows", 0), ("mala", "half-in-single", 1)])
def test_what_shows_in_matrices_or_in_single_precision_only_counts_as_a_change_and_is_killed(name, operator, further):
    row = sampler_row(name)
    out = Runner(row).trial(mutant(name, operator), DETERMINISTIC_TIERS)
    assert out.settings == (len(settings(row)) + further,)
    assert out.kills[0].verdict == "fail"
    assert [setting.single for setting in further_settings(row)] == [False, True]


@pytest.mark.parametrize(
    ("name", "operator", "check"),
    [
        ("sgld", "clipped-draw", "far_field"),
        ("sgld", "guarded-gradient", "far_field"),
        ("sgld", "first-coordinates", "equal_coordinates"),
        ("sgld", "constant-key", "fresh_draws"),
        ("sgld", "hidden-clock", "closed_state"),
    ],
)
def test_a_premise_that_is_violated_is_found_by_the_statement_of_it(name, operator, check):
    row = sampler_row(name)
    found = [m for m in catalogue(row) if m.operator == operator]
    outcomes = [Runner(row).trial(m, ("contract",)) for m in found[-1:]]
    assert [(out.status, out.kills[0].check, out.kills[0].verdict) for out in outcomes] == [("killed", check, "fail")]


def test_a_stale_cache_is_no_equivalent_although_one_step_from_z_is_the_same():
    row = sampler_row("mala")
    kept = [m for m in catalogue(row) if m.operator == "kept-cache" and m.after.endswith("gradient=end.gradient)")]
    assert [proof(row, m) for m in kept] == [None]
