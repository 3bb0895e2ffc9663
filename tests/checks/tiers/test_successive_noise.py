"""Noise that is kept from step to step, in the ways that strangers keep it, and right samplers with a history."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import Case, NotApplicable
from sgmcmc_verification.checks.tiers.law.successive_noise import noise_of_successive_steps
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims, IndependentNoise, Source, StationaryLaw
from sgmcmc_verification.samplers.overdamped.leimkuhler_matthews import LeimkuhlerMatthews
from sgmcmc_verification.targets.registry import target
from sgmcmc_verification.targets.target import Target


class History(NamedTuple):
    """Position, a number of steps, and what else is kept."""

    position: Any
    count: Any
    kept: Any


@dataclass(frozen=True)
class Walk:
    """x' = x - h grad U + sqrt(2 h) e(kept, xi), from `noise(kept, xi, count) -> (e, kept)`."""

    noise: Any

    backend = "jax"
    needs = frozenset({"gradient"})
    claims = Claims(Source("", "a test"), StationaryLaw(order=1), IndependentNoise())

    def init(self, key, position, estimator):
        return History(position, jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, position))

    def step(self, key, state, step_size, estimator):
        estimate, _ = estimator.estimate(key, (), state.position)
        leaves, tree = jax.tree.flatten(state.position)
        keys = jax.random.split(key, len(leaves))
        draws = jax.tree.unflatten(tree, [jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)])
        e, kept = self.noise(state.kept, draws, state.count)
        move = lambda x, g, e: x - step_size * g + jnp.sqrt(2 * step_size) * e
        return History(jax.tree.map(move, state.position, estimate.gradient, e), state.count + 1, kept)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


def both(f):
    """f on each leaf of what is kept and of what is drawn; the draw is kept."""
    return lambda kept, draws, count: (jax.tree.map(lambda old, new: f(old, new, count), kept, draws), draws)


WRONG = {
    "a moving average of two": both(lambda old, new, n: (old + new) / jnp.sqrt(2.0)),
    "an autoregression": lambda kept, draws, count: (
        (mixed := jax.tree.map(lambda old, new: 0.6 * old + 0.8 * new, kept, draws)),
        mixed,
    ),
    "antithetic in every second step": both(lambda old, new, n: jnp.where(n % 2 == 1, -old, new)),
    "the last draw again in every third step": both(lambda old, new, n: jnp.where(n % 3 == 1, old, new)),
    "a sign that the last draw decides": both(lambda old, new, n: jnp.where(old > 0, new, -new)),
}
RIGHT = {
    "a draw that is kept and not used": both(lambda old, new, n: new),
    "a count that turns the sign of the draw of even steps": lambda kept, draws, count: (draws, kept),
    "a sum of two of its own draws": both(lambda old, new, n: 0.6 * new + 0.8 * new[::-1] if new.ndim else new),
    "a nonlinear map of its own draw": both(lambda old, new, n: jnp.tanh(new)),
    "no noise": both(lambda old, new, n: jnp.zeros_like(new)),
}


def found(noise, name):
    row = Row("walk", lambda _: Walk(noise), targets=(name,))
    return noise_of_successive_steps(Case(Subject(row), target(name)))


@pytest.mark.parametrize("name", ["gaussian-correlated-2d", "gaussian-pytree"])
@pytest.mark.parametrize("wrong", WRONG)
def test_noise_that_an_earlier_step_drew_is_seen(wrong, name):
    result = found(WRONG[wrong], name)
    assert result.verdict == "fail", result.reason
    assert result.effect > 0.01


@pytest.mark.parametrize("name", ["gaussian-correlated-2d", "gaussian-pytree"])
@pytest.mark.parametrize("right", RIGHT)
def test_a_history_that_does_not_enter_passes(right, name):
    result = found(RIGHT[right], name)
    assert result.verdict == "pass", result.reason


def test_the_scheme_of_leimkuhler_and_matthews_keeps_its_noise_and_does_not_claim_otherwise():
    """x' = x - h grad U + sqrt(h / 2) (R_n + R_(n+1)): of second order because of what it keeps."""
    law: Target = target("double-well")
    row = Row("lm", lambda _: LeimkuhlerMatthews(), targets=(law.name,))
    with pytest.raises(NotApplicable, match="claims no IndependentNoise"):
        noise_of_successive_steps(Case(Subject(row), law))


def test_what_a_schedule_counts_is_seen_only_if_it_changes_the_step():
    """A step that depends on its number is no function of z: the claim is that of a chain without a clock."""
    clock = both(lambda old, new, n: new * jnp.where(n > 2, 1.1, 1.0))
    assert found(clock, "gaussian-correlated-2d").verdict == "fail"
