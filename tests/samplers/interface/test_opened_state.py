"""Objects that a host sampler keeps, taken apart into numbers and made again.

Oracles: a chain by the opened states is the chain by the objects, number for number; what is in an object is known of
each example; a second moment of 1/2 for one of 1 is violated, whatever the momentum is kept in.
"""

import copy
from collections import OrderedDict, deque
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from sgmcmc_verification.checks.core.third_party import builder
from sgmcmc_verification.checks.tiers.law.gaussian import gaussian_limit
from sgmcmc_verification.checks.tiers.premises.closed_state import closed_state
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.estimators.host import HostExact
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.opened_state import Closed, Opened, closed, is_tree, open_state, opened
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import decide

torch = pytest.importorskip("torch")
PLANE = target("gaussian-correlated-2d")
H = 0.02


class Slots:
    """Position and momentum, in slots."""

    __slots__ = ("p", "q")

    def __init__(self, q, p):
        self.q, self.p = q, p


class Plain:
    """Position and momentum, and how often it moved."""

    def __init__(self, q, p):
        self.q, self.p, self.moves = q, p, 0


class Fields:
    """Position and momentum in a structured array."""

    def __init__(self, q, p):
        self.both = np.zeros(np.shape(q), [("q", float), ("p", float)])
        self.both["q"], self.both["p"] = q, p

    q = property(lambda self: self.both["q"])
    p = property(lambda self: self.both["p"])


def of_slots(q, p):
    return Slots(q, p)


def of_torch(q, p):
    return OrderedDict(q=torch.tensor(np.asarray(q)), p=torch.tensor(np.asarray(p)), name="chain")


class Kept:
    """Symplectic Euler with an exact friction; `make(q, p)` is the state, its noise is `scale` times too large."""

    backend = "host"

    def __init__(self, make, scale=1.0):
        self.make, self.scale = make, scale

    def init(self, key, position, estimator):
        return self.make(np.array(position), key.standard_normal(np.shape(position)))

    def parts(self, state):
        if isinstance(state, OrderedDict):
            return state["q"].numpy(), state["p"].numpy()
        return (state[0], state[1]) if isinstance(state, deque) else (state.q, state.p)

    def step(self, key, state, step_size, estimator):
        (q, p), keep = self.parts(state), np.exp(-step_size)
        noise = self.scale * key.standard_normal(q.shape)
        p = keep * (p - step_size * np.asarray(estimator.estimate(key, (), q)[0].gradient))
        p = p + np.sqrt(1 - keep**2) * noise
        return self.make(q + step_size * p, p)

    def position(self, state):
        return self.parts(state)[0]


MAKES = {
    "an object": Plain,
    "slots": of_slots,
    "a namespace": lambda q, p: SimpleNamespace(q=q, p=p),
    "a deque": lambda q, p: deque([q, p], maxlen=2),
    "fields": Fields,
    "tensors": of_torch,
}
make = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


@make
def test_a_chain_by_its_numbers_is_the_chain(make):
    plain, estimator = complete(Kept(make)), HostExact(PLANE)
    numbers = open_state(plain, PLANE.example, estimator, H)
    assert numbers is not plain
    ends = []
    for sampler in (plain, numbers):
        state = sampler.init(np.random.default_rng(1), PLANE.example, estimator)
        for i in range(5):
            state = sampler.step(np.random.default_rng([2, i]), state, H, estimator)
        ends.append(np.asarray(sampler.position(state)))
    np.testing.assert_array_equal(*ends)
    assert is_tree(state)
    again = opened(closed(state))
    assert jax.tree.structure(again) == jax.tree.structure(state)


@make
def test_z_is_found_and_the_law_decided(make):
    sampler = builder("a stranger", Kept(make))(PLANE)
    state = sampler.init(np.random.default_rng(1), PLANE.example, HostExact(PLANE))
    assert np.size(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(sampler.unpack(state))])) == 4
    assert decide(closed_state, Kept(make), PLANE.name).verdict == "pass"
    assert decide(gaussian_limit, Kept(make), PLANE.name).verdict == "pass"
    assert decide(gaussian_limit, Kept(make, scale=0.5**0.5), PLANE.name).verdict == "fail"


def test_a_state_that_is_a_tree_is_left_alone():
    sampler = complete(Kept(lambda q, p: SimpleNamespace(q=q, p=p)))
    estimator = HostExact(PLANE)
    once = open_state(sampler, PLANE.example, estimator, H)
    assert open_state(once, PLANE.example, estimator, H) is once
    assert is_tree({"count": 3, "x": np.zeros(2), "key": jax.random.key(0), "none": None})
    assert not is_tree({"name": "chain"})
    assert not is_tree(np.zeros(2, [("q", float)]))


def test_steps_leave_what_they_were_given():
    """An object that is changed in place is another one for each step."""

    class InPlace(Kept):
        def step(self, key, state, step_size, estimator):
            after = super().step(key, state, step_size, estimator)
            state.q, state.p = after.q, after.p
            return state

    estimator = HostExact(PLANE)
    sampler = open_state(complete(InPlace(Plain)), PLANE.example, estimator, H)
    state = sampler.init(np.random.default_rng(1), PLANE.example, estimator)
    before = copy.deepcopy(state.leaves)
    sampler.step(np.random.default_rng(2), state, H, estimator)
    for ours, old in zip(state.leaves, before, strict=True):
        np.testing.assert_array_equal(ours, old)


def itself():
    holder = SimpleNamespace(x=np.zeros(2))
    holder.holder = holder
    return holder


def in_two_places():
    x = np.zeros(2)
    return [x, x[:1]]


@pytest.mark.parametrize(
    "value",
    [itself(), in_two_places(), {"generator": np.random.RandomState(0)}, np.array([{}], object), object()],
    ids=["itself", "shared memory", "an old generator", "an array of objects", "nothing in it"],
)
def test_what_cannot_be_taken_apart_is_closed(value):
    with pytest.raises(Closed):
        opened(value)


def test_an_array_may_stand_in_two_places_at_the_start_only():
    """Two positions, the first of them twice: later on to write to one would be to write to the other."""
    x = np.zeros(2)
    assert len(opened(deque([x, x]), twice=True).leaves) == 2
    with pytest.raises(Closed):
        opened(deque([x, x]))


class Counting(Kept):
    """A step counts in the object, and stops to make noise at the 40th; it is no part of the state."""

    def __init__(self, make):
        super().__init__(make)
        self.calls = 0

    def step(self, key, state, step_size, estimator):
        self.calls += 1
        self.scale = 1.0 if self.calls < 40 else 0.0
        return super().step(key, state, step_size, estimator)


@make
def test_what_the_sampler_counts_is_found_behind_the_opened_state(make):
    assert decide(closed_state, Counting(make), PLANE.name).verdict == "fail"


def test_a_tree_of_an_opened_state_keeps_its_form():
    state = opened(Plain(np.zeros(2), np.ones(2)))
    doubled = jax.tree.map(lambda leaf: 2 * leaf, state)
    assert isinstance(doubled, Opened)
    np.testing.assert_array_equal(closed(doubled).p, [2.0, 2.0])


class Scaled:
    """A state whose number is an array of no axes at first, and a number of NumPy after arithmetic."""

    def __init__(self, position, scale):
        self.position, self.scale, self.array = position, scale, {"array": 1.0}


def test_a_number_that_was_an_array_without_axes_stays_what_it_was():
    init = lambda rng, position, estimator: Scaled(np.array(position), np.asarray(1.0))
    step = lambda rng, state, h, estimator: Scaled(state.position + state.scale, state.scale * 1.5)
    sampler = open_state(simple_sampler(step, init=init, backend="host"), np.zeros(2), Exact(None), 0.1)
    first = sampler.init(np.random.default_rng(0), np.zeros(2), Exact(None))
    after = sampler.step(np.random.default_rng(0), first, 0.1, None)
    assert jax.tree.structure(after) == jax.tree.structure(first)
    assert [np.ndim(leaf) for leaf in after.leaves] == [1, 0, 0]
    assert isinstance(after.leaves[1], np.ndarray)
    assert after.leaves[1] == 1.5


def test_an_array_that_was_a_number_is_another_state():
    init = lambda rng, position, estimator: Scaled(np.array(position), 1.0)
    step = lambda rng, state, h, estimator: Scaled(state.position, np.ones(3))
    sampler = open_state(simple_sampler(step, init=init, backend="host"), np.zeros(2), Exact(None), 0.1)
    first = sampler.init(np.random.default_rng(0), np.zeros(2), Exact(None))
    assert jax.tree.structure(sampler.step(np.random.default_rng(0), first, 0.1, None)) != jax.tree.structure(first)


class OwnStream:
    """SGLD in NumPy whose state keeps the generator that it draws from."""

    backend = "host"

    def __init__(self, begin, keep, draw=lambda generator, shape: generator.standard_normal(shape)):
        self.begin, self.keep, self.draw = begin, keep, draw

    def init(self, rng, position, estimator):
        return self.keep(np.array(position), self.begin(rng))

    def position(self, state):
        return state["position"] if isinstance(state, dict) else state.position

    def step(self, rng, state, h, estimator):
        x = self.position(state)
        generator = state["stream"] if isinstance(state, dict) else state.stream
        g = estimator.estimate(rng, (), x)[0].gradient
        return self.keep(x - h * g + np.sqrt(2 * h) * self.draw(generator, x.shape), generator)


class Streams(NamedTuple):
    position: Any
    stream: Any


STREAMS = {
    "spawned, in an object": (lambda rng: rng.spawn(1)[0], lambda x, g: SimpleNamespace(position=x, stream=g)),
    "seeded, in a dictionary": (
        lambda rng: np.random.default_rng(rng.integers(2**63)),
        lambda x, g: {"position": x, "stream": g},
    ),
    "that of the start, in a tuple": (lambda rng: rng, Streams),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_generator_that_a_state_keeps_is_one_of_each_step(name):
    begin, keep = STREAMS[name]
    assert decide(closed_state, OwnStream(begin, keep)).verdict == "pass"
    assert decide(gaussian_limit, OwnStream(begin, keep), PLANE.name).verdict == "pass"
    larger = OwnStream(begin, keep, lambda generator, shape: 1.2 * generator.standard_normal(shape))
    assert decide(gaussian_limit, larger, PLANE.name).verdict == "fail"


@pytest.mark.parametrize(
    ("begin", "draw"),
    [
        pytest.param(lambda rng: np.random.default_rng(0), lambda g, shape: g.standard_normal(shape), id="each start"),
        pytest.param(lambda rng: rng.spawn(1)[0], lambda g, shape: copy.deepcopy(g).normal(size=shape), id="each step"),
    ],
)
def test_a_generator_that_is_the_same_for_each_start_or_step_does_not_give_way(begin, draw):
    sampler = complete(OwnStream(begin, STREAMS["spawned, in an object"][1], draw))
    assert open_state(sampler, PLANE.example, HostExact(PLANE), H) is sampler
