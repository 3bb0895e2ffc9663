"""A memory outside of z and a clock are found, where they begin; what is part of z, caches, counts and records pass."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.tiers.premises.closed_state import closed_state
from sgmcmc_verification.samplers.types import CarriedState, Claims, Source, StationaryLaw
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import Kept, Langevin, decide, gradient, normal

WELL = "double-well"


@dataclass
class Hidden(Langevin):
    """Its author says that z is the position, and that `init` makes a state of it."""

    def unpack(self, state):
        return state.position

    def pack(self, key, z, estimator):
        return self.init(key, z, estimator)


def until(n):
    return lambda key, x, count, g: (jnp.where(count < n, 1.0, 0.5) * normal(key, x), count + 1)


class StaleMALA:
    """MALA that keeps the gradient of the last proposal, accepted or not."""

    def __init__(self, fresh):
        self.fresh = fresh

    def init(self, key, position, estimator):
        return Kept(position, gradient(estimator, position))

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, g, h = state.position, state.kept, step_size
        y = x - h * g + jnp.sqrt(2 * h) * normal(a, x)
        at = lambda z: estimator.estimate(key, (), z)[0]
        gy = gradient(estimator, y)
        forth, back = jnp.sum((y - x + h * g) ** 2), jnp.sum((x - y + h * gy) ** 2)
        accept = jnp.log(jax.random.uniform(b)) < at(x).potential - at(y).potential + (forth - back) / (4 * h)
        kept = jnp.where(accept, gy, g) if self.fresh else gy
        return Kept(jnp.where(accept, y, x), kept)

    needs = ("gradient", "potential")


class HostWalk:
    """SGLD in NumPy, with a number of steps as an attribute."""

    backend = "host"

    def __init__(self, stop):
        self.stop, self.steps = stop, 0

    def step(self, rng, x, step_size, estimator):
        self.steps += 1
        g = np.asarray(estimator.estimate(jax.random.key(0), (), x)[0].gradient)
        return x - step_size * g + np.sqrt(2 * step_size) * (self.steps < self.stop) * rng.standard_normal(np.shape(x))


class HostCount:
    """SGLD in NumPy, with a number of steps in its state."""

    backend = "host"

    def __init__(self, stop):
        self.stop = stop

    def init(self, rng, position, estimator):
        return Kept(np.array(position), 0)

    def step(self, rng, state, step_size, estimator):
        x, n = state
        g = np.asarray(estimator.estimate(jax.random.key(0), (), x)[0].gradient)
        scale = np.sqrt(2 * step_size) * (n < self.stop)
        return Kept(x - step_size * g + scale * rng.standard_normal(np.shape(x)), n + 1)


class Counting:
    """SGLD whose object counts the calls of its step, and adds no noise in the second."""

    def __init__(self):
        self.calls = 0

    def step(self, key, x, step_size, estimator):
        self.calls += 1
        scale = 0.0 if self.calls == 2 else 1.0
        return x - step_size * gradient(estimator, x) + scale * jnp.sqrt(2 * step_size) * normal(key, x)


@dataclass
class Flattening:
    """SGLD on vectors; the function that leads back is an attribute, which `init` sets, or each step."""

    by_step: bool = False
    back: Any = None

    def init(self, key, position, estimator):
        flat, self.back = ravel_pytree(position)
        return {"flat": flat}

    def position(self, state):
        return self.back(state["flat"])

    def step(self, key, state, step_size, estimator):
        flat = state["flat"]
        if self.by_step:
            self.back = ravel_pytree(self.back(flat))[1]
        g = ravel_pytree(gradient(estimator, self.back(flat)))[0]
        return {"flat": flat - step_size * g + jnp.sqrt(2 * step_size) * normal(key, flat)}


class Remembering(Flattening):
    """One whose step keeps a function with a memory: its noise becomes smaller."""

    def __init__(self):
        super().__init__()
        self.shrink = lambda noise: noise

    def step(self, key, state, step_size, estimator):
        before = self.shrink
        self.shrink = lambda noise: 0.99 * before(noise)
        flat = state["flat"]
        g = ravel_pytree(gradient(estimator, self.back(flat)))[0]
        return {"flat": flat - step_size * g + self.shrink(jnp.sqrt(2 * step_size) * normal(key, flat))}


class HostFloat(HostWalk):
    """The same, in floats."""

    def __init__(self, stop):
        self.stop, self.steps = stop, 0.0


class HostEnergies:
    """Random walk Metropolis in NumPy that keeps energies, a time and the accepted moves, and reads none of them."""

    backend = "host"

    def __init__(self):
        self.energy, self.total, self.accepted, self.time, self.moves = 0.0, 0.0, 0, 0.0, []

    def step(self, rng, x, step_size, estimator):
        U = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        y = x + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))
        now, then = U(x), U(y)
        taken = np.log(rng.random()) < now - then
        self.energy, self.time = (then if taken else now), self.time + step_size
        self.total += self.energy
        self.accepted += int(taken)
        if taken:
            self.moves.append(y)
        return y if taken else np.array(x)


class HostHistory(HostWalk):
    """The same, by the length of a list."""

    def __init__(self, stop):
        self.stop, self.history = stop, []

    @property
    def steps(self):
        return len(self.history)

    @steps.setter
    def steps(self, number):
        self.history.append(number)


class HostShared(HostWalk):
    """The same, counted by the class."""

    count = 0

    def __init__(self, stop):
        self.stop = stop

    @property
    def steps(self):
        return HostShared.count

    @steps.setter
    def steps(self, number):
        HostShared.count = number


class KeptKey:
    """SGLD whose noise is that of the key of the step and of the one before, or of another key that it keeps."""

    def __init__(self, again):
        self.again = again

    def init(self, key, position, estimator):
        return Kept(position, key)

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        noise = (normal(a, state.position) + normal(state.kept, state.position)) / jnp.sqrt(2.0)
        x = state.position - step_size * gradient(estimator, state.position) + jnp.sqrt(2 * step_size) * noise
        return Kept(x, a if self.again else b)


def rms(key, x, average, g):
    average = 0.9 * average + 0.1 * g**2
    return normal(key, x) / jnp.sqrt(0.1 + average), average


def antithetic(key, x, last, g):
    """A draw, then its negative."""
    second = jnp.any(last != 0)
    noise = jnp.where(second, -last, normal(key, x))
    return noise, jnp.where(second, 0 * noise, noise)


SCHEDULE = jnp.where((jnp.arange(61) >= 26) & (jnp.arange(61) < 38), 0.5, 1.0)
MEMORY = {
    "noise halves at step 1500": Langevin(until(1500)),
    "noise halves at step 20000, beyond the run": Langevin(until(20_000)),
    "a cycle of 300 steps": Langevin(lambda k, x, n, g: (jnp.where(n % 300 < 32, 1.2, 0.8) * normal(k, x), n + 1)),
    "a count in floats": Langevin(
        lambda k, x, n, g: (jnp.where(n < 9e4, 1.0, 0.0) * normal(k, x), n + 1.0), lambda x: jnp.zeros(())
    ),
    "an average of squared gradients that is not shown": Hidden(rms, lambda x: jnp.ones(jnp.shape(x))),
    "antithetic noise that is not shown": Hidden(antithetic, lambda x: jnp.zeros(jnp.shape(x))),
    "a window of 10000 steps in 50000": Langevin(
        lambda k, x, n, g: (jnp.where(n % 50_000 >= 40_000, 0.0, 1.0) * normal(k, x), n + 1)
    ),
    "one step in 20000": Langevin(lambda k, x, n, g: (jnp.where(n % 20_000 == 19_999, 9.0, 1.0) * normal(k, x), n + 1)),
    "a count of thousands": Langevin(lambda k, x, n, g: (jnp.where(n // 1000 > 3000, 0.0, 1.0) * normal(k, x), n + 1)),
    "a count of 16 bits that becomes negative": Langevin(
        lambda k, x, n, g: (jnp.where(n < 0, 0.0, 1.0) * normal(k, x), n + jnp.int16(1)), lambda x: jnp.int16(0)
    ),
    "the gradient of a rejected proposal": StaleMALA(fresh=False),
    "an attribute of a host sampler": HostWalk(200),
    "an attribute of a host sampler, beyond the run": HostWalk(40_000),
    "a count in the state of a host sampler": HostCount(7_000),
    "a count in floats of a host sampler, beyond the run": HostFloat(40_000.0),
    "the length of a list of a host sampler, beyond the run": HostHistory(4_000),
    "an attribute of the class of a host sampler": HostShared(40_000),
    "the key of the step before": KeptKey(again=True),
    "a schedule in a table": Langevin(lambda k, x, n, g: (SCHEDULE[n // 997 % 61] * normal(k, x), n + 1)),
    "an attribute that a traced step changes": Counting(),
    "a function with a memory that a traced step keeps": Remembering(),
}
CLOSED = {
    "a function of shapes that `init` keeps": Flattening(),
    "a function of shapes that each step keeps": Flattening(by_step=True),
    "a count that is not used": Langevin(lambda k, x, n, g: (normal(k, x), n + 1)),
    "an average that is not used": Langevin(
        lambda k, x, mean, g: (normal(k, x), 0.9 * mean + 0.1 * x), lambda x: jnp.zeros(jnp.shape(x))
    ),
    "MALA with a cache of its gradient": StaleMALA(fresh=True),
    "a host sampler that counts to no end": HostWalk(10**14),
    "a count in the state of a host sampler to no end": HostCount(10**14),
    "a count in floats of a host sampler to no end": HostFloat(1e14),
    "a list of a host sampler to no end": HostHistory(10**14),
    "energies that a host sampler keeps": HostEnergies(),
    "a count of the class to no end": HostShared(10**14),
    "a key that is kept and used once": KeptKey(again=False),
    "the last noise, for plots": Langevin(
        lambda k, x, last, g: ((e := normal(k, x)), e), lambda x: jnp.zeros(jnp.shape(x))
    ),
    "a count in floats that is not used": Langevin(lambda k, x, n, g: (normal(k, x), n + 1.0), lambda x: jnp.zeros(())),
}


# What no `unpack` leaves out is part of z.
SHOWN = {
    "an average of squared gradients": Langevin(rms, lambda x: jnp.ones(jnp.shape(x))),
    "antithetic noise": Langevin(antithetic, lambda x: jnp.zeros(jnp.shape(x))),
}


@pytest.mark.parametrize("name", MEMORY)
def test_what_a_state_hides_is_found(name):
    finding = decide(closed_state, MEMORY[name])
    assert finding.verdict == "fail", finding.reason


@pytest.mark.parametrize("name", CLOSED | SHOWN)
def test_caches_counts_records_and_what_is_part_of_z_are_no_memory(name):
    finding = decide(closed_state, (CLOSED | SHOWN)[name])
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_later_position_depends_on_is_part_of_z(name):
    sampler = builder("a stranger", SHOWN[name])(target(WELL))
    state = sampler.init(jax.random.key(0), target(WELL).example, None)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(sampler.unpack(state))] == [(1,), (1,)]


def test_a_class_is_left_as_it_was_before_its_count_was_put_forward():
    decide(closed_state, HostShared(10**14))
    assert HostShared.count < 10_000


def test_the_first_step_that_differs_is_named():
    assert "from step 1501 on" in decide(closed_state, MEMORY["noise halves at step 1500"]).reason


def test_a_count_that_matters_later_is_named_with_the_leaf():
    reason = decide(closed_state, MEMORY["noise halves at step 20000, beyond the run"]).reason
    assert "state.kept put forward by" in reason


class RawKey:
    """SGLD whose state holds the words of a raw key, which its noise is drawn from beside that of the step."""

    def init(self, key, position, estimator):
        return {"rng": jax.random.key_data(key), "x": position}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        own, use = jax.random.split(jax.random.wrap_key_data(state["rng"]))
        noise = normal(jax.random.fold_in(use, jax.random.bits(key)), state["x"])
        x = state["x"] - step_size * gradient(estimator, state["x"]) + jnp.sqrt(2 * step_size) * noise
        return {"rng": jax.random.key_data(own), "x": x}


def test_the_words_of_a_raw_key_are_no_clock():
    finding = decide(closed_state, RawKey(), WELL)
    assert finding.verdict == "pass", finding.reason


class Carrying(NamedTuple):
    """Position, the draw of the last step, and a clock."""

    position: Any
    draw: Any
    clock: Any


@dataclass
class Declared:
    """Leimkuhler-Matthews whose draw is `share(clock)` of a normal; that it carries state is declared."""

    share: Any
    first: Any
    tick: Any
    claims = Claims(Source("", "own"), StationaryLaw(order=2), CarriedState("the draw of the last step"))

    def init(self, key, position, estimator):
        return Carrying(position, normal(key, position), self.first)

    def position(self, state):
        return state.position

    def step(self, key, state, step_size, estimator):
        draw = self.share(state.clock) * normal(key, state.position)
        x = state.position - step_size * gradient(estimator, state.position)
        return Carrying(x + jnp.sqrt(step_size / 2) * (state.draw + draw), draw, self.tick(state.clock))


WITH_A_CLOCK = {
    "a count, past": Declared(lambda n: jnp.where(n < 700, 1.0, 0.5), 0, lambda n: n + 1),
    "a count, far ahead": Declared(lambda n: jnp.where(n < 70_000, 1.0, 0.5), 0, lambda n: n + 1),
    "a number that decays": Declared(lambda s: 1 + s, 1.0, lambda s: 0.99 * s),
}
WITHOUT = {
    "a count that is kept for the record": Declared(lambda n: 1.0, 0, lambda n: n + 1),
    "a number that stays": Declared(lambda s: s, 1.0, lambda s: s),
}


@pytest.mark.parametrize("name", WITH_A_CLOCK)
def test_a_clock_is_found_although_a_carried_state_is_declared(name):
    finding = decide(closed_state, WITH_A_CLOCK[name], WELL)
    assert finding.verdict == "fail", finding.reason
    assert "clock" in finding.reason


@pytest.mark.parametrize("name", WITHOUT)
def test_a_declared_carried_state_without_a_clock_passes(name):
    finding = decide(closed_state, WITHOUT[name], WELL)
    assert finding.verdict == "pass", finding.reason
    assert "which is declared" in finding.reason


class Numbered(NamedTuple):
    """Position, key of the start, and number of steps."""

    position: Any
    seed: Any
    number: Any


@dataclass
class Stream:
    """SGLD whose draws have the key `fold_in(key, number of the step)`, of the step's key or of that of the start."""

    own: bool = False
    number: Any = field(default=lambda n: n)
    noise: Any = field(default=lambda n: 1.0)

    def init(self, key, position, estimator):
        return Numbered(position, key, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(jax.random.fold_in(state.seed if self.own else key, self.number(state.number)))
        x = state.position
        noise = self.noise(state.number) * jnp.sqrt(2 * step_size) * normal(a, x)
        return Numbered(x - step_size * gradient(estimator, x, b) + noise, state.seed, state.number + 1)


STREAMS = {
    "the number of the step, and its key": Stream(),
    "the number of the step, and the key of the start": Stream(own=True),
    "half of the number, and the key of the step": Stream(number=lambda n: n // 2),
    "the number times seven": Stream(own=True, number=lambda n: 7 * n + 1),
}
RETURNING = {
    "half of the number, and the key of the start": Stream(own=True, number=lambda n: n // 2),
    "a byte of the number": Stream(own=True, number=lambda n: n.astype(jnp.uint8)),
    "the number up to ten thousand": Stream(own=True, number=lambda n: jnp.minimum(n, 10_000)),
    "the last two digits of the number": Stream(own=True, number=lambda n: n % 100),
}
TIMED = {
    "half of the noise from step 5000 on": Stream(noise=lambda n: jnp.where(n > 5000, 0.5, 1.0)),
    "noise that fades": Stream(own=True, noise=lambda n: (1 + n) ** -0.1),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_count_that_leads_to_new_keys_alone_is_no_memory(name):
    finding = decide(closed_state, STREAMS[name], WELL)
    assert finding.verdict == "pass", finding.reason


@pytest.mark.parametrize("name", RETURNING)
def test_a_count_that_leads_to_keys_that_were_used_fails(name):
    finding = decide(closed_state, RETURNING[name], WELL)
    assert finding.verdict == "fail", finding.reason
    assert "draws come back" in finding.reason


@pytest.mark.parametrize("name", TIMED)
def test_a_count_that_leads_to_keys_and_to_more_fails(name):
    finding = decide(closed_state, TIMED[name], WELL)
    assert finding.verdict == "fail", finding.reason
    assert "draws come back" not in finding.reason


@pytest.mark.parametrize("wrong", [False, True])
def test_an_index_that_goes_round_is_not_put_past_its_end(wrong):
    """In NumPy one coordinate a step, in an order of their own: a count that is put forward leaves the list."""

    class Scan:
        backend = "host"

        def init(self, rng, position, estimator):
            return {"position": np.array(position), "order": rng.permutation(np.size(position)), "next": 0, "steps": 0}

        def step(self, rng, state, h, estimator):
            x, order, k, steps = state["position"].copy(), state["order"], state["next"], state["steps"] + 1
            g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
            cold = wrong and steps > 50_000
            x.flat[order[k]] += -h * g.flat[order[k]] + np.sqrt(2 * h) * rng.standard_normal() * (not cold)
            k = (k + 1) % len(order)
            return {"position": x, "order": order if k else rng.permutation(len(order)), "next": k, "steps": steps}

    found = decide(closed_state, Scan(), "gaussian-1d-scaled")
    assert found.verdict == ("fail" if wrong else "pass"), found.reason
