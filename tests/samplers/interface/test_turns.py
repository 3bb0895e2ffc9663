"""What counts round in a state is known for it, and the law is that of whole turns.

Oracles: the turns are written in the examples; the wrong ones have temperatures of 1.44 and 1/2, by hand.
"""

import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.registry import find_statement
from sgmcmc_verification.checks.tiers.invariance import law_of_steps
from sgmcmc_verification.checks.tiers.premises.closed_state import closed_state
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.turns import MOST, ON_HOST, Turns
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import Kept, Langevin, decide, gradient, normal

PLANE = "gaussian-correlated-2d"


class Phase(NamedTuple):
    """A momentum, and when it was drawn."""

    count: Any
    momentum: Any
    position: Any


class Refreshed:
    """Leapfrog whose momentum is drawn afresh in every n-th step; `round_` says whether the count is of one turn."""

    def __init__(self, every, scale=1.0, round_=True):
        self.every, self.scale, self.round = every, scale, round_

    def init(self, key, position, estimator):
        return Phase(jnp.zeros((), jnp.int32), jnp.zeros_like(position), position)

    def step(self, key, state, step_size, estimator):
        count, p, x = state
        p = jnp.where(count % self.every == 0, self.scale * normal(key, x), p)
        p = p - step_size / 2 * gradient(estimator, x)
        x = x + step_size * p
        p = p - step_size / 2 * gradient(estimator, x)
        return Phase((count + 1) % self.every if self.round else count + 1, p, x)


class Sides(NamedTuple):
    """Which side moves next."""

    position: Any
    left: Any


class Alternating:
    """Euler's step on the first coordinate and on the others in turn."""

    def init(self, key, position, estimator):
        return Sides(position, jnp.array(True))

    def step(self, key, state, step_size, estimator):
        x, left = state
        moved = x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)
        mine = (jnp.arange(x.size) == 0) == left
        return Sides(jnp.where(mine, moved, x), ~left)


class Slow(NamedTuple):
    """Fast and slow weights."""

    fast: Any
    position: Any
    count: Any


class Lookahead:
    """SGLD whose slow weights go `share` of the way to the fast ones every fifth step, which then start from there."""

    def __init__(self, share):
        self.share = share

    def init(self, key, position, estimator):
        return Slow(position, position, 0)

    def step(self, key, state, step_size, estimator):
        fast, slow, count = state
        fast = fast - step_size * gradient(estimator, fast) + jnp.sqrt(2 * step_size) * normal(key, fast)
        sync = count % 5 == 4
        slow = jnp.where(sync, slow + self.share * (fast - slow), slow)
        return Slow(jnp.where(sync, slow, fast), slow, count + 1)


class HostAlternating:
    """`Alternating` in NumPy, with a list for its state."""

    backend = "host"

    def init(self, rng, position, estimator):
        return [position, 0]

    def position(self, state):
        return state[0]

    def step(self, rng, state, step_size, estimator):
        x, turn = state
        g = estimator.estimate(rng, (), x)[0].gradient
        moved = x - step_size * g + (2 * step_size) ** 0.5 * rng.standard_normal(x.shape)
        return [np.where((np.arange(x.size) == 0) == (turn == 0), moved, x), 1 - turn]


class Pool(NamedTuple):
    """Noise for the next steps."""

    position: Any
    block: Any
    used: Any


class Ahead:
    """SGLD whose noise for `size` steps is drawn at once, when `used_up` says so; the first block is that of `init`.

    The count never reads 0 again. `last` is the row of the last step.
    """

    def __init__(self, size=4, used_up=lambda used, size: used >= size, last=None):
        self.size, self.used_up, self.last = size, used_up, size - 1 if last is None else last

    def drawn(self, key, x):
        return jax.random.normal(key, (self.size, *x.shape), x.dtype)

    def init(self, key, position, estimator):
        return Pool(position, self.drawn(key, position), jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        x, block, used = state
        anew = self.used_up(used, self.size)
        block = jnp.where(anew, self.drawn(key, x), block)
        used = jnp.where(anew, 0, used)
        noise = block[jnp.where(used == self.size - 1, self.last, used)]
        return Pool(x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * noise, block, used + 1)


class HostAhead:
    """The same in NumPy, with a list that is emptied."""

    backend = "host"

    def init(self, rng, position, estimator):
        return {"x": position, "left": 0, "noise": np.zeros((4, *position.shape))}

    def position(self, state):
        return state["x"]

    def step(self, rng, state, step_size, estimator):
        x, left, noise = state["x"], state["left"], state["noise"]
        if left == 0:
            left, noise = 4, rng.standard_normal((4, *x.shape))
        g = estimator.estimate(rng, (), x)[0].gradient
        x = x - step_size * g + (2 * step_size) ** 0.5 * noise[left - 1]
        return {"x": x, "left": left - 1, "noise": noise}


RIGHT = {
    "noise drawn ahead for four steps": (Ahead(), 4),
    "noise drawn ahead for ten steps": (Ahead(10), 10),
    "noise drawn ahead in NumPy": (HostAhead(), 4),
    "a momentum for five steps": (Refreshed(5), 5),
    "a momentum for forty steps": (Refreshed(40), 40),
    "a momentum for seven steps of a count without end": (Refreshed(7, round_=False), 7),
    "two sides": (Alternating(), 2),
    "two sides, in NumPy": (HostAlternating(), 2),
    "slow weights that follow": (Lookahead(1.0), 5),
}
WRONG = {
    "the last row used in two steps": (Ahead(used_up=lambda used, size: used > size), 5),
    "the first row used for the last step": (Ahead(last=0), 4),
    "a momentum of variance 1.44": (Refreshed(5, 1.2), 5),
    "slow weights that go half of the way": (Lookahead(0.5), 5),
}
OTHERS = {
    "a count that nothing reads": Langevin(lambda key, x, n, g: (normal(key, x), n + 1)),
    "a count that is folded into the key": Langevin(
        lambda key, x, n, g: (normal(jax.random.fold_in(key, n), x), n + 1)
    ),
    "a switch": Langevin(lambda key, x, n, g: (jnp.where(n < 100, 1.0, 0.7) * normal(key, x), n + 1)),
    "a number that is drawn": Langevin(
        lambda key, x, n, g: (normal(key, x) * (1 + 0.1 * (n % 2)), jax.random.randint(key, (), 0, 9)),
    ),
    "a turn of more steps than are looked at": Refreshed(MOST + 1),
}


def built(candidate, name=PLANE):
    return builder("a stranger", candidate)(target(name))


def beginning(sampler):
    law = target(PLANE)
    if sampler.backend == "host":
        return np.random.default_rng(0), np.array(law.example), HostExact(law)
    return jax.random.key(0), law.example, Exact(law)


@pytest.mark.parametrize("name", RIGHT | WRONG)
def test_a_turn_is_found_and_z_is_what_it_reads(name):
    candidate, turn = (RIGHT | WRONG)[name]
    sampler = built(candidate)
    assert isinstance(sampler, Turns)
    assert sampler.turn == turn
    state = sampler.init(*beginning(sampler))
    assert np.array_equal(jax.tree.leaves(sampler.unpack(state)), [target(PLANE).example])


@pytest.mark.parametrize("name", OTHERS)
def test_other_numbers_are_no_turns(name):
    assert not isinstance(built(OTHERS[name]), Turns)


@pytest.mark.parametrize("name", ["a momentum for five steps", "two sides, in NumPy", "slow weights that follow"])
def test_the_state_is_closed_from_turn_to_turn(name):
    finding = decide(closed_state, RIGHT[name][0], PLANE)
    assert finding.verdict == "pass", finding.reason


class Late(Refreshed):
    """It stops to draw afresh once its count is large."""

    def step(self, key, state, step_size, estimator):
        after = super().step(key, state, step_size, estimator)
        late = state.count > 200_000
        return after._replace(position=jnp.where(late, state.position, after.position))


def test_a_switch_beside_a_turn_is_found():
    finding = decide(closed_state, Late(5, round_=False), PLANE)
    assert finding.verdict == "fail"
    assert "put forward" in finding.reason


@pytest.mark.parametrize("name", ["a momentum for five steps", "two sides", "slow weights that follow"])
def test_by_whole_turns_a_right_sampler_has_the_law(name):
    finding = decide(law_of_steps, RIGHT[name][0], PLANE)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", WRONG)
def test_by_whole_turns_a_wrong_sampler_has_not(name):
    finding = decide(law_of_steps, WRONG[name][0], PLANE)
    assert finding.verdict == "fail", finding.reason


def test_a_cycle_of_noise_has_the_variance_of_its_mean():
    """Variances 1.44 and 0.64 in turn are 1.04 in the mean, which no limit h -> 0 takes away."""
    cycle = Langevin(lambda key, x, n, g: (jnp.where(n % 64 < 32, 1.2, 0.8) * normal(key, x), n + 1))
    finding = decide(find_statement("gaussian_limit"), cycle, PLANE)
    assert finding.verdict == "fail"
    assert finding.effect == pytest.approx(0.04, rel=0.05)


def test_a_turn_is_as_long_as_a_step():
    """Without noise a turn of five steps of size h / 5 moves by h along the slope, to first order."""
    drift = Langevin(lambda key, x, n, g: (0 * x, (n + 1) % 5))
    drift.step = lambda key, s, h, e: Kept(
        s.position - (1 + 0.5 * (s.kept % 5 == 0)) * h * gradient(e, s.position), (s.kept + 1) % 5
    )
    sampler, law = built(drift), target(PLANE)
    assert isinstance(sampler, Turns)
    exact, h = Exact(law), 1e-6
    state = sampler.init(jax.random.key(0), law.example, exact)
    moved = sampler.position(sampler.step(jax.random.key(1), state, h, exact)) - law.example
    slope = exact.estimate(jax.random.key(0), (), law.example)[0].gradient
    np.testing.assert_allclose(moved, -1.1 * h * slope, rtol=1e-4)


@pytest.mark.parametrize("candidate", [Refreshed(5), HostAlternating()], ids=["of JAX", "in NumPy"])
def test_a_turn_that_was_seen_on_one_target_is_seen_in_few_steps_on_another(candidate, monkeypatch):
    looked_at = []
    search = sys.modules[Turns.__module__]
    monkeypatch.setattr(
        search, "_period", lambda ends, most, of=search._period: looked_at.append(most) or of(ends, most)
    )
    build = builder("a stranger", candidate)
    first, second = build(target(PLANE)), build(target("gaussian-50d"))
    assert (second.turn, second.rest) == (first.turn, first.rest)
    assert looked_at[0] in (MOST, ON_HOST)
    assert looked_at[1:] == [first.turn]


class EachInTurn:
    """A step of one coordinate after the other: as many steps a turn as there are coordinates."""

    def init(self, key, position, estimator):
        return {"position": position, "next": jnp.zeros((), jnp.int32)}

    def step(self, key, state, step_size, estimator):
        x, i = state["position"], state["next"]
        moved = x - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)
        return {"position": x.at[i].set(moved[i]), "next": (i + 1) % x.size}


def test_a_turn_of_another_length_is_looked_for():
    build = builder("a stranger", EachInTurn())
    assert build(target(PLANE)).turn == 2
    assert build(target("gaussian-anisotropic")).turn == target("gaussian-anisotropic").size
