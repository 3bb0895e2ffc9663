"""Records of samplers in NumPy beside their real steps with the same draws."""

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts import generators
from sgmcmc_verification.checks.proof.hosts.generators import KeyedGenerator, SymbolicGenerator
from sgmcmc_verification.checks.proof.hosts.replay import replayed
from sgmcmc_verification.checks.proof.hosts.symbols import recorded
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target

HIGH = "gaussian-50d"


def slope(estimator, rng, x):
    return estimator.estimate(rng, (), x)[0].gradient


def signs(rng, x, h, estimator):
    """Langevin steps with a sign of its own for each coordinate: 2^50 ways through a step."""
    return x - h * slope(estimator, rng, x) + np.sqrt(2 * h) * np.where(rng.random(x.shape) < 0.5, -1.0, 1.0)


def of_one_kind(rng, x, h, estimator):
    """A move of a kind that is chosen by name."""
    kind = rng.choice(["near", "far"], p=[0.8, 0.2])
    size = {"near": 1.0, "far": 3.0}[kind] if isinstance(kind, str) else 0.0
    y = x + size * np.sqrt(2 * h) * rng.standard_normal(x.shape)
    energy = lambda q: estimator.estimate(rng, (), q)[0].potential
    return y if np.log(rng.random()) < energy(x) - energy(y) else x


def moves(rng, x, h, estimator):
    """Draws of many laws."""
    noise = rng.laplace(size=x.shape) + rng.standard_t(5.0, x.shape) + rng.integers(-1, 2, x.shape)
    noise = (
        noise + rng.exponential(size=x.shape) + rng.gamma(2.0, size=x.shape) + rng.permutation(x.size).reshape(x.shape)
    )
    return x - h * slope(estimator, rng, x) + h * noise


class Counting:
    """A step that depends on how many were taken before."""

    backend = "host"

    def __init__(self):
        self.calls = 0

    def step(self, rng, x, h, estimator):
        self.calls += 1
        return x - h * slope(estimator, rng, x) + rng.standard_normal(x.shape) / self.calls


@pytest.mark.parametrize("step", [signs, of_one_kind, moves])
def test_a_record_of_any_number_of_branches_is_the_step(step):
    law = target(HIGH)
    with jax.enable_x64(True):
        record = replayed(simple_sampler(step, backend="host"), law, 0.01)
    assert record.backend == "jax"


def test_a_step_that_keeps_what_is_no_state_is_refused():
    with jax.enable_x64(True), pytest.raises(Unreadable, match="hidden state"):
        replayed(complete(Counting()), target("double-well"), 0.01)


def of_a_pilot(rng, position, estimator):
    """A state with the scale that six tested moves of a pilot have left: 2^6 ways through them."""
    x, scale = np.zeros(position.shape), 1.0
    energy = lambda q: estimator.estimate(rng, (), q)[0].potential
    for _ in range(6):
        y = x + scale * rng.standard_normal(x.shape)
        x, scale = (y, 1.2 * scale) if np.log(rng.random()) < energy(x) - energy(y) else (x, 0.8 * scale)
    return {"scale": scale, "x": position}


def test_a_start_that_cannot_be_read_is_refused_with_the_step():
    def walk(rng, state, h, estimator):
        return state | {"x": state["x"] + h * state["scale"] * rng.standard_normal(state["x"].shape)}

    sampler = simple_sampler(walk, init=of_a_pilot, position=lambda state: state["x"], backend="host")
    with jax.enable_x64(True), pytest.raises(Unreadable, match="ways through the branches"):
        replayed(sampler, target("double-well"), 0.01)


@pytest.mark.parametrize("law", ["normal", "uniform", "exponential", "integers"])
def test_a_record_with_other_draws_is_refused(law, monkeypatch):
    """The check can fail: a record of another law is no record of the step."""
    right = generators.of_key
    other = lambda key, call, name, *rest: right(key, call + (name == law), name, *rest)
    monkeypatch.setattr(
        SymbolicGenerator,
        "drawn",
        lambda self, name, shape, *p: generators.symbolic(other(self.key, self.calls, name, shape, *p)),
    )

    def step(rng, x, h, estimator):
        parts = rng.standard_normal(x.shape), rng.random(x.shape), rng.exponential(size=x.shape)
        return x - h * slope(estimator, rng, x) + h * (sum(parts) + rng.integers(0, 9, x.shape))

    with jax.enable_x64(True), pytest.raises(Unreadable, match="not the one that was read"):
        replayed(simple_sampler(step, backend="host"), target("double-well"), 0.01)


def test_numbers_and_symbols_of_one_key_are_the_same_draws():
    with jax.enable_x64(True):
        key = jax.random.key(3)
        numbers, symbols = KeyedGenerator(key), SymbolicGenerator(key)
        for draw in (lambda g: g.normal(1.0, 2.0, 4), lambda g: g.integers(0, 5, 4), lambda g: g.permutation(4)):
            assert np.array_equal(draw(numbers), np.asarray(recorded(draw(symbols)), float))
