"""Errors planted in the reader of host samplers: real steps beside the record see them."""

import numpy as np
import pytest
from jax import lax

from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.proof.hosts import generators, guard, operations, symbols
from sgmcmc_verification.checks.proof.prove import prove
from sgmcmc_verification.samplers.estimators.host import HostExact
from tests.checks.proof.hosts.samplers import RIGHT, WRONG


def proof_of(sampler, dimension=2):
    return prove(builder("stranger", sampler), dimension, HostExact)


SEEN = "is not the one that runs"


def test_a_lost_term_is_seen(monkeypatch):
    monkeypatch.setitem(operations.KEEPING, "subtract", lambda a, b: lax.sub(a, lax.mul(b, np.float64(0.999))))
    assert SEEN in proof_of(RIGHT["in place"]).reason


def test_draws_of_two_calls_that_are_read_as_one_are_seen(monkeypatch):
    right = generators._child
    monkeypatch.setattr(generators, "_child", lambda key, call, law: right(key, 1, law))
    assert SEEN in proof_of(RIGHT["loop"]).reason


def test_views_that_are_read_as_copies_are_seen(monkeypatch):
    right = symbols.SymbolicArray.__getitem__

    def copied(self, index):
        found = right(self, index)
        return found.copy() if isinstance(found, symbols.SymbolicArray) else found

    monkeypatch.setattr(symbols.SymbolicArray, "__getitem__", copied)
    assert SEEN in proof_of(RIGHT["views"]).reason


def test_copies_that_are_read_as_one_array_are_seen(monkeypatch):
    from sgmcmc_verification.checks.proof.hosts import patches

    sampler = WRONG["one for all"]
    before = proof_of(sampler)
    monkeypatch.setitem(patches.STAND_INS[id(np)].__dict__, "array", patches.STAND_INS[id(np)].asarray)
    after = proof_of(sampler)
    assert before.verdict == "fail"
    assert SEEN in after.reason


def test_one_side_of_a_branch_that_is_taken_for_granted_is_seen(monkeypatch):
    monkeypatch.setattr(symbols, "decided", lambda predicate: True)
    assert SEEN in proof_of(RIGHT["walk"]).reason


def test_a_uniform_draw_of_another_range_is_seen(monkeypatch):
    right = generators.Draws.random
    monkeypatch.setattr(generators.SymbolicGenerator, "random", lambda self, *a: 2 * right(self, *a), raising=False)
    assert SEEN in proof_of(RIGHT["walk"]).reason


def test_the_guard_itself_is_needed_for_all_of_these(monkeypatch):
    """Without it a lost term is read as if it ran, and the wrong law is told of a right step."""
    monkeypatch.setattr(guard._Guard, "compare", lambda self: None)
    monkeypatch.setitem(operations.KEEPING, "subtract", lambda a, b: lax.sub(a, lax.mul(b, np.float64(0.999))))
    assert SEEN not in proof_of(RIGHT["in place"]).reason


@pytest.mark.parametrize("orders", [(0, 0), (1, 0), (1, 2), (3, 1)])
def test_derivatives_of_the_waves_are_those_of_finite_differences(orders):
    waves = guard.Waves.random(2)
    x, e = np.array([0.3, -0.8]), 1e-4
    for j in range(2):
        raised = [n + (i == j) for i, n in enumerate(orders)]
        step = e * np.eye(2)[j]
        after, before = (list(x + sign * step) for sign in (1, -1))
        slope = (waves.derivative(after, orders) - waves.derivative(before, orders)) / (2 * e)
        bound = e**2 * 3 * 2 * np.abs(waves.directions).max() ** (sum(orders) + 3)  # h^2 / 6 times a third derivative
        assert abs(slope - waves.derivative(list(x), raised)) < bound + 1e-16 / e * 10
