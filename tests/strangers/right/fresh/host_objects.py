"""Host samplers whose state is what a Python programmer would keep: an object that is changed in place, one with slots,
lists of floats, a state dict of torch, a deque of the last two positions, a structured array, a label beside the
numbers, a generator of the chain's own. All are Langevin integrators with the law exp(-U) N(0, I) + O(h)."""

import math
from collections import OrderedDict, deque

import numpy as np
import torch

from sgmcmc_verification.samplers.simple import simple_sampler


def gradient(rng, estimator, x):
    """Grad U."""
    return np.asarray(estimator.estimate(rng, (), x)[0].gradient)


class Walker:
    """A chain that moves itself."""

    def __init__(self, x, v):
        self.x, self.v = x, v
        self.moves = 0

    def ornstein_uhlenbeck(self, rng, t):
        keep = math.exp(-t)
        self.v = keep * self.v + math.sqrt(1 - keep * keep) * rng.standard_normal(self.x.shape)

    def kick(self, g, t):
        self.v = self.v - t * g

    def drift(self, t):
        self.x = (self.x + t * self.v).astype(self.x.dtype)
        self.moves += 1


class InPlace:
    """OBABO by the methods of an object that is handed back after it has moved."""

    backend = "host"

    def init(self, key, position, estimator):
        x = np.array(position)
        return Walker(x, key.standard_normal(x.shape))

    def step(self, key, state, step_size, estimator):
        h = float(step_size)
        state.ornstein_uhlenbeck(key, h / 2)
        state.kick(gradient(key, estimator, state.x), h / 2)
        state.drift(h)
        state.kick(gradient(key, estimator, state.x), h / 2)
        state.ornstein_uhlenbeck(key, h / 2)
        return state

    def position(self, state):
        return state.x


mutable_object = InPlace()


class Phase:
    """Position and momentum, and room for nothing else."""

    __slots__ = ("p", "q")

    def __init__(self, q, p):
        self.q, self.p = q, p


class Slotted:
    """Semi-implicit SGHMC of friction 2 that makes a new object each time."""

    backend = "host"

    def init(self, key, position, estimator):
        q = np.array(position)
        return Phase(q, np.zeros_like(q))

    def step(self, key, state, step_size, estimator):
        h, friction = float(step_size), 2.0
        noise = math.sqrt(2 * friction * h) * key.normal(size=state.q.shape)
        p = (1 - h * friction) * state.p - h * gradient(key, estimator, state.q) + noise
        return Phase((state.q + h * p).astype(state.q.dtype), p.astype(state.q.dtype))

    def position(self, state):
        return state.q


slotted = Slotted()


class Lists:
    """SGHMC on lists of Python numbers, one coordinate after the other."""

    backend = "host"

    def init(self, key, position, estimator):
        x = [float(value) for value in position]
        return {"v": [float(key.standard_normal()) for _ in x], "x": x}

    def step(self, key, state, step_size, estimator):
        h = float(step_size)
        g = gradient(key, estimator, np.array(state["x"]))
        v, x = [], []
        for old, place, slope in zip(state["v"], state["x"], g):
            new = old - h * float(slope) - h * old + math.sqrt(2 * h) * float(key.standard_normal())
            v.append(new)
            x.append(place + h * new)
        return {"v": v, "x": x}

    def position(self, state):
        return np.array(state["x"])


lists = Lists()


class StateDict:
    """The state dict of a torch optimiser: parameters and their momentum buffers, BAOAB."""

    backend = "host"

    def init(self, key, position, estimator):
        weight = torch.tensor(np.asarray(position))
        return OrderedDict(weight=weight, momentum_buffer=self._normal(key, weight))

    def _normal(self, key, like):
        return torch.tensor(key.standard_normal(like.shape), dtype=like.dtype)

    def step(self, key, state, step_size, estimator):
        h = float(step_size)
        w, m = state["weight"], state["momentum_buffer"]
        grad = lambda w: torch.tensor(gradient(key, estimator, w.numpy()), dtype=w.dtype)
        m = m - h / 2 * grad(w)
        w = w + h / 2 * m
        keep = math.exp(-h)
        m = keep * m + math.sqrt(1 - keep**2) * self._normal(key, w)
        w = w + h / 2 * m
        m = m - h / 2 * grad(w)
        return OrderedDict(weight=w, momentum_buffer=m)

    def position(self, state):
        return state["weight"].numpy()


torch_state_dict = StateDict()


class Verlet:
    """Underdamped Langevin in positions alone (Brunger, Brooks and Karplus), the last two in a deque.

    (x' - 2 x + x_old) / h^2 = -grad U - (x' - x_old) / (2 h) + sqrt(2 / h) xi
    """

    backend = "host"

    def init(self, key, position, estimator):
        x = np.array(position)
        return deque([x, x], maxlen=2)

    def step(self, key, state, step_size, estimator):
        h = float(step_size)
        old, x = state
        force = -h * h * gradient(key, estimator, x) + math.sqrt(2 * h) * h * key.standard_normal(x.shape)
        new = (2 * x - (1 - h / 2) * old + force) / (1 + h / 2)
        return deque([x, new.astype(x.dtype)], maxlen=2)

    def position(self, state):
        return state[-1]


deque_verlet = Verlet()


class Records:
    """BAOAB on a structured array with the fields q and p."""

    backend = "host"

    def init(self, key, position, estimator):
        q = np.asarray(position)
        chain = np.zeros(q.shape, dtype=[("q", q.dtype), ("p", q.dtype)])
        chain["q"], chain["p"] = q, key.standard_normal(q.shape)
        return chain

    def step(self, key, state, step_size, estimator):
        h, chain = float(step_size), state.copy()
        chain["p"] -= h / 2 * gradient(key, estimator, chain["q"])
        chain["q"] += h / 2 * chain["p"]
        chain["p"] = np.exp(-h) * chain["p"] + np.sqrt(1 - np.exp(-2 * h)) * key.standard_normal(chain.shape)
        chain["q"] += h / 2 * chain["p"]
        chain["p"] -= h / 2 * gradient(key, estimator, chain["q"])
        return chain

    def position(self, state):
        return state["q"]


record_array = Records()


def _labelled(rng, state, h, estimator):
    q, p = state["q"], state["p"]
    p = np.exp(-h) * (p - h * gradient(rng, estimator, q)) + np.sqrt(1 - np.exp(-2 * h)) * rng.standard_normal(q.shape)
    return {"label": state["label"], "p": p.astype(q.dtype), "q": (q + h * p).astype(q.dtype)}


# Symplectic Euler with an exact friction; the chain has a name.
labelled = simple_sampler(
    _labelled,
    init=lambda rng, x, estimator: {"label": "chain 1", "p": rng.standard_normal(np.shape(x)), "q": np.array(x)},
    position=lambda state: state["q"],
    backend="host",
)


def _own_generator(rng, state, h, estimator):
    x, mine = state["x"], state["generator"]
    g = gradient(rng, estimator, x)
    return {"generator": mine, "x": (x - h * g + np.sqrt(2 * h) * mine.standard_normal(x.shape)).astype(x.dtype)}


# SGLD whose chain has a generator of its own, spawned at the start.
own_generator = simple_sampler(
    _own_generator,
    init=lambda rng, x, estimator: {"generator": rng.spawn(1)[0], "x": np.array(x)},
    position=lambda state: state["x"],
    backend="host",
)
