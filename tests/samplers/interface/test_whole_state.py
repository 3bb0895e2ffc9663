"""z of a state that shows none: position and what later positions depend on, without records, caches, clocks and keys.

Oracles: which numbers these are is known of each example, and a step from `pack(unpack(state))` is the step itself.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgmcmc_verification.checks.core.precision import in_dtype
from sgmcmc_verification.samplers.estimators.basic import Exact
from sgmcmc_verification.samplers.interface.first_state import first_state
from sgmcmc_verification.samplers.interface.from_step import complete
from sgmcmc_verification.samplers.interface.whole_state import Whole, fresh_key, is_key, whole_state
from sgmcmc_verification.targets.registry import target
from tests.helpers.strangers import Langevin, Underdamped, gradient, normal, potential

PLANE = target("gaussian-correlated-2d")
H = 0.01


class State(NamedTuple):
    """What a stranger keeps; `position` does not come first."""

    count: Any
    key: Any
    kept: Any
    position: Any


class Kept:
    """SGLD with `kept' = update(kept, x, g, e)`, whose noise is `noise(kept, e)`."""

    def __init__(self, first, update, noise=lambda kept, e: e):
        self.first, self.update, self.noise = first, update, noise

    def init(self, key, position, estimator):
        return State(0, jax.random.key(5), self.first(position, estimator), position)

    def step(self, key, state, step_size, estimator):
        x, e = state.position, normal(key, state.position)
        g = gradient(estimator, x)
        moved = x - step_size * g + jnp.sqrt(2 * step_size) * self.noise(state.kept, e)
        kept = self.update(state.kept, x, g, e)
        return State(state.count + 1, jax.random.fold_in(state.key, 1), kept, moved)


class CachedMALA:
    """MALA with energy and gradient of the state, or of the last proposal if `stale`."""

    def __init__(self, stale):
        self.stale = stale

    def init(self, key, position, estimator):
        return {"U": potential(estimator, position), "g": gradient(estimator, position), "x": position}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        a, b = jax.random.split(key)
        x, g, h = state["x"], state["g"], step_size
        y = x - h * g + jnp.sqrt(2 * h) * normal(a, x)
        new = self.init(key, y, estimator)
        forth, back = jnp.sum((y - x + h * g) ** 2), jnp.sum((x - y + h * new["g"]) ** 2)
        accept = jnp.log(jax.random.uniform(b)) < state["U"] - new["U"] + (forth - back) / (4 * h)
        chosen = jax.tree.map(lambda p, q: jnp.where(accept, p, q), new, state)
        return chosen | ({"g": new["g"]} if self.stale else {})


class Delayed:
    """SGLD with the gradient of the position before."""

    def init(self, key, position, estimator):
        return {"g": gradient(estimator, position), "x": position}

    def position(self, state):
        return state["x"]

    def step(self, key, state, step_size, estimator):
        x = state["x"]
        moved = x - step_size * state["g"] + jnp.sqrt(2 * step_size) * normal(key, x)
        return {"g": gradient(estimator, x), "x": moved}


class Computed:
    """SGLD in y = log(x) + c of a positive x, with c kept, where the position is computed from both."""

    def init(self, key, position, estimator):
        return {"shift": jnp.ones_like(position), "y": position + 1.0}

    def position(self, state):
        return state["y"] - state["shift"]

    def step(self, key, state, step_size, estimator):
        x = self.position(state)
        y = state["y"] - step_size * gradient(estimator, x) + jnp.sqrt(2 * step_size) * normal(key, x)
        return {"shift": 0.9 * state["shift"] + 0.01 * x, "y": y}


class OwnStream:
    """The scheme of Leimkuhler and Matthews, with draws from a key of the state."""

    def init(self, key, position, estimator):
        return State(0, key, normal(jax.random.fold_in(key, 1), position), position)

    def step(self, key, state, step_size, estimator):
        own, sub = jax.random.split(state.key)
        x, fresh = state.position, normal(sub, state.position)
        moved = x - step_size * gradient(estimator, x) + jnp.sqrt(step_size / 2) * (state.kept + fresh)
        return State(state.count + 1, own, fresh, moved)


zeros = lambda x, estimator: jnp.zeros_like(x)
RECORD = Kept(zeros, lambda kept, x, g, e: 0.9 * kept + 0.1 * x)
CACHE = Kept(lambda x, estimator: gradient(estimator, x), lambda kept, x, g, e: g)
AVERAGE = Kept(
    lambda x, estimator: jnp.ones_like(x),
    lambda kept, x, g, e: 0.9 * kept + 0.1 * g**2,
    lambda kept, e: e / jnp.sqrt(1 + kept),
)
CONSTANT = Kept(lambda x, estimator: jnp.full_like(x, 2.0), lambda kept, x, g, e: kept, lambda kept, e: kept * e)
CLOCK = Kept(lambda x, estimator: jnp.zeros(()), lambda kept, x, g, e: kept + 1.0, lambda kept, e: e / (1 + kept))
LAST = Kept(zeros, lambda kept, x, g, e: e, lambda kept, e: (e + kept) / np.sqrt(2))


def whole(candidate, law=PLANE, size=1.0):
    sampler, estimator = complete(candidate), Exact(law)
    start = first_state(sampler, jax.random.key(0), law.example, estimator)
    return whole_state(sampler, start, estimator, size / law.curvature, jax.random.key)


def lived(candidate, law=PLANE, steps=3):
    """A state after a few steps."""
    sampler, estimator = complete(candidate), Exact(law)
    state = sampler.init(jax.random.key(9), law.example, estimator)
    step = jax.jit(lambda key, s: sampler.step(key, s, jnp.asarray(H, law.example.dtype), estimator))
    for i in range(steps):
        state = step(jax.random.key(10 + i), state)
    return state, step


@pytest.mark.parametrize(
    ("candidate", "rest"),
    [
        (Underdamped(), 1),
        (AVERAGE, 1),
        (LAST, 1),
        (Delayed(), 1),
        (OwnStream(), 1),
        (RECORD, 0),
        (CACHE, 0),
        (CONSTANT, 0),
        (CLOCK, 0),
        (CachedMALA(stale=False), 0),
        (Langevin(lambda key, x, count, g: (normal(key, x), count + 1)), 0),
        (Langevin(lambda key, x, count, g: (normal(key, x), count + 1.0), lambda x: jnp.zeros(())), 0),
    ],
    ids=[
        "momentum",
        "average",
        "last draw",
        "gradient of the position before",
        "last draw of a key of the state",
        "record",
        "cache never read",
        "constant",
        "clock",
        "cache of MALA",
        "count",
        "float count",
    ],
)
def test_z_is_the_position_and_what_later_positions_depend_on(candidate, rest):
    found = whole(candidate)
    state, _ = lived(candidate)
    z = found.unpack(state)
    if not rest:
        assert np.array_equal(z, complete(candidate).position(state))
        return
    assert isinstance(z, Whole)
    assert np.array_equal(z.position, complete(candidate).position(state))
    assert [leaf.shape for leaf in z.rest] == [(2,)] * rest


@pytest.mark.parametrize(
    "candidate",
    [Underdamped(), AVERAGE, LAST, RECORD, CONSTANT, Delayed(), CachedMALA(stale=False), Computed()],
    ids=lambda c: type(c).__name__,
)
def test_a_state_that_is_packed_from_z_takes_the_same_step(candidate):
    found = whole(candidate)
    state, step = lived(candidate)
    again = found.pack(jax.random.key(77), found.unpack(state), Exact(PLANE))
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for ours, theirs in zip(*(jax.tree.leaves(found.unpack(s)) for s in (again, state)), strict=True):
        assert np.array_equal(ours, theirs)
    ends = [complete(candidate).position(step(jax.random.key(1), s)) for s in (state, again)]
    np.testing.assert_allclose(*ends, rtol=1e-13)


def test_a_momentum_that_sorts_first_is_not_taken_for_the_position():
    state, _ = lived(Underdamped())
    assert list(state) == ["momentum", "position"]
    z = whole(Underdamped()).unpack(state)
    assert np.array_equal(z.position, state["position"])
    assert np.array_equal(z.rest[0], state["momentum"])
    moved = whole(Underdamped()).pack(jax.random.key(0), Whole(z.position + 1, z.rest), Exact(PLANE))
    np.testing.assert_array_equal(moved["position"], state["position"] + 1)
    np.testing.assert_array_equal(moved["momentum"], state["momentum"])


def test_a_cache_is_computed_anew_from_the_position_that_is_packed():
    found = whole(CachedMALA(stale=False))
    state = found.pack(jax.random.key(0), jnp.array([3.0, -2.0]), Exact(PLANE))
    # the gradient of the Gaussian, by hand
    expected = PLANE.gaussian.precision @ (np.array([3.0, -2.0]) - PLANE.gaussian.mean)
    np.testing.assert_allclose(state["g"], expected, rtol=1e-12)


def test_a_cache_that_a_rejection_leaves_stale_is_part_of_z_once_a_rejection_is_met():
    assert len(whole(CachedMALA(stale=False), size=8.0).rest) == 0
    found = whole(CachedMALA(stale=True), size=8.0)
    state = {"U": jnp.array(3.0), "g": jnp.array([9.0, 8.0]), "x": jnp.array([1.0, 2.0])}
    assert np.array_equal(found.unpack(state).rest[0], state["g"])


def test_a_position_that_is_computed_from_the_state_leaves_the_numbers_themselves_as_z():
    found = whole(Computed())
    state, _ = lived(Computed())
    assert found.position is None
    shift, y = found.unpack(state)
    assert np.array_equal(shift, state["shift"])
    assert np.array_equal(y, state["y"])


def test_counts_and_keys_keep_no_memory():
    found = whole(LAST)
    state, _ = lived(LAST)
    a, b = (found.pack(jax.random.key(i), found.unpack(state), Exact(PLANE)) for i in range(2))
    assert (int(state.count), int(a.count)) == (3, 0)
    words = [jax.random.key_data(s.key).tobytes() for s in (state, a, b)]
    assert len(set(words)) == 3


def test_raw_and_typed_keys_are_told_from_other_numbers():
    typed, raw = jax.random.key(3), jax.random.PRNGKey(3)
    assert is_key(typed)
    assert is_key(raw)
    assert not is_key(jnp.arange(2))
    assert not is_key(jnp.zeros(2))
    many = jax.random.split(typed, 3)
    for leaf in (typed, raw, many, jax.random.split(raw, 3)):
        new = fresh_key(jax.random.key(8), leaf)
        assert (new.shape, new.dtype) == (leaf.shape, leaf.dtype)
        data = lambda k: np.asarray(jax.random.key_data(k) if jnp.issubdtype(k.dtype, jax.dtypes.prng_key) else k)
        assert not np.array_equal(data(new), data(leaf))


@pytest.mark.parametrize("candidate", [Underdamped(), CachedMALA(stale=False), RECORD], ids=lambda c: type(c).__name__)
def test_single_precision_stays_single_and_has_the_same_z(candidate):
    law = in_dtype(PLANE, "float32")
    double, single = whole(candidate), whole(candidate, law)
    assert (single.places, single.rest, single.caches) == (double.places, double.rest, double.caches)
    state, _ = lived(candidate, law)
    assert {leaf.dtype for leaf in jax.tree.leaves(single.unpack(state))} == {np.dtype("float32")}
    again = single.pack(jax.random.key(0), single.unpack(state), Exact(law))
    assert [getattr(a, "dtype", None) for a in jax.tree.leaves(again)] == [
        getattr(a, "dtype", None)
        for a in jax.tree.leaves(complete(candidate).init(jax.random.key(0), law.example, Exact(law)))
    ]


class HostWalk:
    """A random walk in NumPy with a count, and a running mean of its positions that `reads` may enter a step."""

    backend = "host"

    def __init__(self, reads=lambda mean, x, accept: x):
        self.reads = reads

    def init(self, rng, position, estimator):
        return {"count": 0, "mean": np.zeros(2), "position": np.array(position)}

    def step(self, rng, state, step_size, estimator):
        x = state["position"] + np.sqrt(2 * step_size) * rng.normal(size=2)
        x = self.reads(state["mean"], x, rng.random())
        mean = state["mean"] + (x - state["mean"]) / (state["count"] + 1)
        return {"count": state["count"] + 1, "mean": mean, "position": x}


def strict(mean, x, accept):
    if np.abs(mean).max() > 500:
        raise FloatingPointError
    return x


READS = [
    lambda mean, x, accept: x - 0.1 * mean,
    lambda mean, x, accept: np.clip(x, mean - 50, mean + 50),
    lambda mean, x, accept: x if np.log(accept) < -np.sum(mean**2) / 100 else np.zeros(2),
    lambda mean, x, accept: x + 1e-9 * mean,
    strict,
]
RECORDS = [lambda mean, x, accept: x, lambda mean, x, accept: x + 0 * mean, lambda mean, x, accept: np.abs(x)]


@pytest.mark.parametrize("reads", READS + RECORDS)
def test_numbers_that_a_step_in_python_reads_are_part_of_z_and_records_are_not(reads):
    sampler = complete(HostWalk(reads))
    start = sampler.init(None, PLANE.example, None)
    found = whole_state(sampler, start, Exact(PLANE), 1.0, np.random.default_rng)
    state = sampler.step(np.random.default_rng(1), start, 0.1, None)
    z = found.unpack(state)
    if reads in RECORDS:
        assert np.array_equal(z, state["position"])
    else:
        assert np.array_equal(z.position, state["position"])
        assert np.array_equal(z.rest[0], state["mean"])


class OfItsStart:
    """A walk in NumPy with scales that its start draws, a cache of the energy, and an anchor that is renewed."""

    backend = "host"

    def __init__(self, every=0):
        self.every = every

    def init(self, rng, position, estimator):
        return {"energy": np.sum(position**2), "scales": rng.uniform(1, 2, 2), "x": np.array(position)}

    def position(self, state):
        return state["x"]

    def step(self, rng, state, step_size, estimator):
        y = state["x"] + np.sqrt(2 * step_size) * state["scales"] * rng.normal(size=2)
        accept = np.log(rng.random()) < (state["energy"] - np.sum(y**2)) / 2
        x = y if accept else state["x"]
        scales = state["scales"] + (0.01 * x if self.every and rng.random() < 1 / self.every else 0.0)
        return {"energy": np.sum(x**2), "scales": scales, "x": x}


@pytest.mark.parametrize("every", [0, 20])
def test_numbers_of_the_start_that_no_step_in_python_changes_are_no_part_of_z(every):
    sampler = complete(OfItsStart(every))
    start = sampler.init(np.random.default_rng(0), np.array([0.3, -0.2]), None)
    found = whole_state(sampler, start, Exact(PLANE), 1.0, np.random.default_rng)
    z = found.unpack(start)
    if every:
        assert np.array_equal(z.rest[0], start["scales"])
        return
    assert np.array_equal(z, start["x"])
    again = found.pack(np.random.default_rng(5), np.array([1.0, 1.0]), None)
    assert np.array_equal(again["scales"], start["scales"])
    assert again["energy"] == 2.0


class Population:
    """Differential evolution with crossover in NumPy: a proposal may stay where it was, whatever decides."""

    backend = "host"

    def __init__(self, crossover):
        self.crossover = crossover

    def init(self, rng, position, estimator):
        members = [np.array(position), *(position + rng.normal(size=2) for _ in range(5))]
        return {"members": members, "energies": [float(energy(estimator, x)) for x in members]}

    def position(self, state):
        return state["members"][0]

    def step(self, rng, state, step_size, estimator):
        members, energies = list(state["members"]), list(state["energies"])
        for i in range(6):
            a, b = rng.choice([j for j in range(6) if j != i], size=2, replace=False)
            mask = rng.random(2) < self.crossover
            y = members[i] + mask * (1.2 * (members[a] - members[b]) + np.sqrt(2 * step_size) * rng.normal(size=2))
            u = float(energy(estimator, y))
            if np.log(rng.random()) < energies[i] - u:
                members[i], energies[i] = y, u
        return {"energies": energies, "members": members}


@pytest.mark.parametrize("crossover", [1.0, 0.7, 0.5])
def test_energies_that_seldom_matter_are_read_and_follow_from_their_walkers(crossover):
    """All but that of the chain that is shown, which follows from the position."""
    sampler = complete(Population(crossover))
    start = sampler.init(np.random.default_rng(0), PLANE.example, Exact(PLANE))
    found = whole_state(sampler, start, Exact(PLANE), 1.0, np.random.default_rng)
    assert [np.shape(leaf) for leaf in found.unpack(start).rest] == [(2,)] * 5
    assert [each.slot.leaf for each in found.followers] == [1, 2, 3, 4, 5]


class HostKernel:
    """Random-walk Metropolis in NumPy that keeps the potential of its position, beside a momentum that `kept` reads."""

    backend = "host"

    def __init__(self, stale=False):
        self.stale = stale

    def init(self, rng, position, estimator):
        return {"p": np.ones(2), "u": float(energy(estimator, position)), "position": np.array(position)}

    def step(self, rng, state, step_size, estimator):
        p = 0.5 * state["p"] + rng.normal(size=2)
        y = state["position"] + np.sqrt(2 * step_size) * p
        u = float(energy(estimator, y))
        if np.log(rng.random()) >= state["u"] - u:
            return {**state, "p": p}
        return {"p": p, "u": state["u"] if self.stale else u, "position": y}


def energy(estimator, x):
    return estimator.estimate(jax.random.key(0), (), x)[0].potential


@pytest.mark.parametrize("stale", [False, True])
def test_a_cache_of_a_sampler_in_python_follows_from_the_position_and_a_stale_one_does_not(stale):
    sampler, estimator = complete(HostKernel(stale)), Exact(PLANE)
    start = sampler.init(np.random.default_rng(0), PLANE.example, estimator)
    found = whole_state(sampler, start, estimator, 1 / PLANE.curvature, np.random.default_rng)
    state = start
    for i in range(6):
        state = sampler.step(np.random.default_rng(i), state, 0.1, estimator)
    z = found.unpack(state)
    assert np.array_equal(z.position, state["position"])
    assert len(z.rest) == 1 + stale
    again = found.pack(np.random.default_rng(9), z, estimator)
    assert again["u"] == pytest.approx(state["u"])
    assert all(np.array_equal(again[name], state[name]) for name in ("p", "position"))


class Scaled:
    """A state in units of its own, alone or beside a momentum."""

    def __init__(self, momentum):
        self.momentum = momentum

    def init(self, key, position, estimator):
        return {"y": position / 3, "p": jnp.zeros_like(position)} if self.momentum else {"y": position / 3}

    def position(self, state):
        return 3 * state["y"]

    def step(self, key, state, step_size, estimator):
        y, p = state["y"], state.get("p", 0.0)
        p = 0.9 * p - step_size * 3 * gradient(estimator, 3 * y) + jnp.sqrt(0.19) * normal(key, y)
        return {"y": y + step_size * p, "p": p} if self.momentum else {"y": y + jnp.sqrt(step_size) * p}


@pytest.mark.parametrize("momentum", [False, True])
def test_other_coordinates_of_a_state_are_the_position_in_z(momentum):
    sampler = complete(Scaled(momentum))
    start = sampler.init(jax.random.key(0), PLANE.example, Exact(PLANE))
    whole = whole_state(sampler, start, Exact(PLANE), 0.1, jax.random.key)
    state = sampler.init(jax.random.key(0), PLANE.example, Exact(PLANE))
    for i in range(3):
        state = sampler.step(jax.random.key(i), state, H, Exact(PLANE))
    z = whole.unpack(state)
    leaves = jax.tree.leaves(z)
    np.testing.assert_allclose(leaves[0], 3 * state["y"])
    assert len(leaves) == 1 + momentum
    again = whole.pack(jax.random.key(9), z, Exact(PLANE))
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for ours, anew in zip(jax.tree.leaves(state), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(anew, ours, rtol=1e-12)


class Twins:
    """Two chains in NumPy and their mean, of which the first is shown; the first may take a step towards the second."""

    backend = "host"

    def __init__(self, chance=0.0):
        self.chance = chance

    def init(self, rng, position, estimator):
        return {"position": np.array(position), "twin": np.array(position) + 1, "mean": np.zeros(2)}

    def step(self, rng, state, step_size, estimator):
        x, twin = state["position"], state["twin"]
        if rng.random() < self.chance:
            x = twin + 0.5 * (x - twin)
        noise = np.sqrt(2 * step_size) * rng.normal(size=2)
        return {"position": x + noise, "twin": twin - noise, "mean": (x + twin) / 2}


@pytest.mark.parametrize(("chance", "size"), [(0.0, 2), (0.2, 4)])
def test_what_the_position_never_depends_on_is_a_record_and_what_it_depends_on_rarely_is_not(chance, size):
    sampler = complete(Twins(chance))
    start = sampler.init(None, PLANE.example, None)
    found = whole_state(sampler, start, Exact(PLANE), 1.0, np.random.default_rng)
    assert sum(np.size(leaf) for leaf in jax.tree.leaves(found.unpack(start))) == size


@dataclass(frozen=True)
class Shown:
    """Two walkers, of which a coin that rarely falls to one side shows one; with a cache: the walker that is shown."""

    copied: bool

    def init(self, key, position, estimator):
        return {"shown": position, "pair": (position, position + 1.0)}

    def step(self, key, state, step_size, estimator):
        move_key, coin_key = jax.random.split(key)
        first, second = state["pair"]
        first = first + jnp.sqrt(step_size) * normal(move_key, first)
        second = first + 1.0 if self.copied else second - 0.1 * normal(move_key, second)
        seldom = jax.random.uniform(coin_key) < 0.01
        return {"shown": first if self.copied else jnp.where(seldom, second, first), "pair": (first, second)}

    def position(self, state):
        return state["shown"]


@pytest.mark.parametrize(("copied", "rest"), [(True, 0), (False, 2)])
def test_a_copy_of_the_position_has_to_stay_one_for_long(copied, rest):
    state, _ = lived(Shown(copied))
    z = whole(Shown(copied)).unpack(state)
    assert len(z.rest if isinstance(z, Whole) else ()) == rest
