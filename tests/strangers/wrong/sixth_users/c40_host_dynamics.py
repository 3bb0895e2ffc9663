"""Schemes with a momentum, a velocity or minibatches of their own, in NumPy and plain Python. Arrays of any shape, or trees."""

import random
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

SECOND = Claims(Source("", "own"), StationaryLaw(order=2))
MASSES = (1.0, 3.0, 0.5)


def ravel(tree):
    """One vector (always a copy) of all numbers of a tree, and the way back (copies too)."""
    leaves, structure = jax.tree_util.tree_flatten(tree)
    leaves = [np.asarray(leaf) for leaf in leaves]
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def rebuild(flat):
        parts = np.split(flat, ends)
        return jax.tree_util.tree_unflatten(
            structure, [part.reshape(leaf.shape).astype(leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
        )

    return np.concatenate([leaf.reshape(-1) for leaf in leaves]), rebuild


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. BAOAB with the force kept from step to step, and kicks that save an allocation: `kick = force; kick *= h / 2` scales the
# array of the force itself, so what the state keeps is h/2 times the force. (The force of `init` is whole: the very first kick
# is right.) From the second step on the first kick is (h/2)^2 F and the last h/2 F, together h F / 2 + O(h^2), while friction
# and noise keep N(0, 1) for p: dx = p dt, dp = F/2 dt - p dt + noise has the law exp(-U/2 - p^2/2). Temperature 2 of positions,
# as h -> 0; momenta are right.


@dataclass
class Phase:
    position: Any
    momentum: np.ndarray
    force: np.ndarray


class KeptForce:
    backend = "host"
    claims = SECOND

    def __init__(self, friction=1.0):
        if friction <= 0:
            raise ValueError("friction has to be positive")
        self.friction = friction

    def _force(self, rng, position, estimator):
        return -ravel(estimator.estimate(rng, (), position)[0].gradient)[0]

    def init(self, rng, position, estimator):
        force = self._force(rng, position, estimator)
        return Phase(position, rng.standard_normal(force.shape).astype(force.dtype), force)

    def step(self, rng, state, h, estimator):
        x, rebuild = ravel(state.position)
        kick = state.force
        kick *= 0.5 * h
        p = state.momentum + kick
        x = x + 0.5 * h * p
        kept = np.exp(-self.friction * h)
        p = kept * p + np.sqrt(1 - kept**2) * rng.standard_normal(p.shape)
        x = x + 0.5 * h * p
        position = rebuild(x)
        force = self._force(rng, position, estimator)
        kick = force
        kick *= 0.5 * h
        p = p + kick
        return Phase(position, p.astype(force.dtype), force)


# ---------------------------------------------------------------------------------------------------------------------
# WRONG for more than one leaf. ABOBA with a mass for each layer (leaf of the position), velocity p / m. One thermostat is made for
# each layer, but a lambda looks its `m` up when it is called: all of them use the mass of the last layer. Layer l has the
# stationary momenta N(0, m_last) and the velocity p / m_l, so the law of its position is exp(-(m_l / m_last) U) for
# a product law: temperature m_last / m_l, with masses 1, 3, 0.5, 1, 3, ...: (3, 1) for two leaves, (1/2, 1/6, 1) for three, (3, 1, 6,
# 3, 1) for five. Right for a single array.


class Layered:
    backend = "host"
    claims = SECOND

    def __init__(self, friction=1.0):
        if friction <= 0:
            raise ValueError("friction has to be positive")
        self.friction = friction

    def init(self, rng, position, estimator):
        leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(position)]
        momenta = []
        for i, leaf in enumerate(leaves):
            p = np.sqrt(MASSES[i % 3]) * rng.standard_normal(leaf.shape)
            momenta.append(np.asarray(p).astype(leaf.dtype))
        return {"position": position, "momenta": momenta}

    def step(self, rng, state, h, estimator):
        leaves, structure = jax.tree_util.tree_flatten(state["position"])
        layers = [np.asarray(leaf) for leaf in leaves]
        masses = [MASSES[i % 3] for i in range(len(layers))]
        kept = np.exp(-self.friction * h)
        thermostats = [
            lambda p: kept * p + np.sqrt((1 - kept**2) * m) * rng.standard_normal(np.shape(p)) for m in masses
        ]

        layers = [x + 0.5 * h * p / m for x, p, m in zip(layers, state["momenta"], masses, strict=True)]
        middle = [np.asarray(x).astype(np.asarray(leaf).dtype) for x, leaf in zip(layers, leaves, strict=True)]
        middle = jax.tree_util.tree_unflatten(structure, middle)
        slopes = jax.tree_util.tree_leaves(estimator.estimate(rng, (), middle)[0].gradient)
        new_layers, new_momenta = [], []
        for x, p, m, slope, thermostat, leaf in zip(
            layers, state["momenta"], masses, slopes, thermostats, leaves, strict=True
        ):
            p = p - 0.5 * h * np.asarray(slope)
            p = thermostat(p)
            p = p - 0.5 * h * np.asarray(slope)
            kind = np.asarray(leaf).dtype
            new_momenta.append(np.asarray(p).astype(kind))
            new_layers.append(np.asarray(x + 0.5 * h * p / m).astype(kind))
        return {"position": jax.tree_util.tree_unflatten(structure, new_layers), "momenta": new_momenta}


# ---------------------------------------------------------------------------------------------------------------------
# WRONG in more than one dimension. Zig-zag process with normal velocities, split: refreshed velocities, drift h/2, flips for the
# time h at a fixed gradient, drift h/2. An event of the total rate sum (v_i g_i)_+ flips ALL coordinates that go uphill, and not
# one of them, chosen in proportion to its rate. Coordinate i then flips at the rate sum_j (v_j g_j)_+ whenever it goes uphill:
# too often. For exp(-U) N(v) inflow - outflow of flips has to be -v.g; a state with one coordinate uphill and one downhill has
# no inflow (after an event none goes uphill). In independent coordinates each is turned back earlier: variance 0.75 in d = 2 and
# 0.40 in d = 5 for a standard normal (simulated, h = 0.2 and 0.05), 0.54 of N(0, diag(1, 1/4)). Right in d = 1.


def zig_zag(renewal=1.0):
    if renewal <= 0:
        raise ValueError("velocities have to be renewed")

    def init(rng, position, estimator):
        flat, _ = ravel(position)
        return {"position": position, "velocity": rng.standard_normal(flat.shape)}

    def step(rng, state, h, estimator):
        dice = random.Random(int(rng.integers(2**63)))
        x, rebuild = ravel(state["position"])
        keep = np.exp(-renewal * h)
        v = [w if dice.random() < keep else dice.gauss(0.0, 1.0) for w in state["velocity"].tolist()]
        x = x + 0.5 * h * np.array(v)
        g = ravel(estimator.estimate(rng, (), rebuild(x))[0].gradient)[0].tolist()

        rates = [max(0.0, w * s) for w, s in zip(v, g, strict=True)]
        clock = 0.0
        while sum(rates) > 0:
            clock += dice.expovariate(sum(rates))
            if clock > h:
                break
            for i, rate in enumerate(rates):
                if rate > 0:
                    v[i] = -v[i]
                    rates[i] = 0.0

        v = np.array(v)
        return {"position": rebuild(x + 0.5 * h * v), "velocity": v}

    return simple_sampler(step, init=init, backend="host")


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. Underdamped dynamics on data in two batches an epoch: an order of all rows is drawn at the start of an epoch, the first
# b = two thirds (rounded up) are a batch, what is left the short second one. Sums over a batch are multiplied by N / b, also
# for the short one. Over an epoch of two steps every row counts N / b once where it should count 2: the mean gradient is that of
# prior + N / (2 b) likelihood, 3/4 of the likelihood for N = 3, 2/3 for 4, 5/8 for 5, 3/4 for many. As h -> 0 the law is
# prior x likelihood^(N / 2b): variances up to 60% too large where data dominate. Right for one or two rows.


def epochs(target, friction=1.0):
    if friction <= 0:
        raise ValueError("friction has to be positive")
    terms = target.terms
    if terms is not None:
        size = terms.size
        batch = (2 * size + 2) // 3
        of_prior = jax.jit(jax.grad(terms.prior))
        of_rows = jax.jit(jax.grad(lambda q, rows: jnp.sum(jax.vmap(terms.datum, (None, 0))(q, rows))))

    def init(rng, position, estimator):
        flat, _ = ravel(position)
        order = rng.permutation(size) if terms is not None else np.arange(1)
        return {
            "position": position,
            "momentum": rng.standard_normal(flat.shape).astype(flat.dtype),
            "order": order,
            "done": 0,
        }

    def step(rng, state, h, estimator):
        x, rebuild = ravel(state["position"])
        order, done = state["order"], state["done"]
        if terms is None:
            slope = ravel(estimator.estimate(rng, (), state["position"])[0].gradient)[0]
        else:
            if done >= size:
                order, done = rng.permutation(size), 0
            index = order[done : done + batch]
            rows = jax.tree_util.tree_map(lambda a: np.asarray(a)[index], terms.data)
            slope = ravel(of_prior(state["position"]))[0]
            slope = slope + size / batch * ravel(of_rows(state["position"], rows))[0]
            done = done + len(index)
        kept = np.exp(-friction * h)
        p = kept * (state["momentum"] - h * slope)
        p = (p + np.sqrt(1 - kept**2) * rng.standard_normal(p.shape)).astype(x.dtype)
        return {"position": rebuild(x + h * p), "momentum": p, "order": order, "done": done}

    return simple_sampler(step, init=init, backend="host")


# ---------------------------------------------------------------------------------------------------------------------
# WRONG. SAGA: the table holds the last gradient that was seen of each row, `total` its sum. Two rows are drawn independently, so
# with probability 1/N the same one twice: `table[index] = fresh` writes it once, `total` is moved by twice its change. From then
# on total is not the sum of the table, and nothing mends it. Each such event adds new - old of a row; between visits x moves by
# O(sqrt(h)), events come every N steps, so the error of total walks at random with a variance that grows like t (not h t): the
# mode of what is sampled, -error / curvature, wanders off. No stationary law, at any h; E x^2 grows without bound. One
# step from `init` is unbiased.


def saga(target):
    terms = target.terms
    if terms is not None:
        count = min(2, terms.size)
        of_prior = jax.jit(jax.grad(terms.prior))
        of_each = jax.jit(jax.vmap(jax.grad(terms.datum), (None, 0)))

        def gradients(position, index):
            rows = jax.tree_util.tree_map(lambda a: np.asarray(a)[index], terms.data)
            leaves = jax.tree_util.tree_leaves(of_each(position, rows))
            return np.concatenate([np.asarray(leaf).reshape(len(index), -1) for leaf in leaves], axis=1)

    def init(rng, position, estimator):
        flat, _ = ravel(position)
        if terms is None:
            table = np.zeros((1, flat.size), flat.dtype)
        else:
            table = gradients(position, np.arange(terms.size))
        return {"position": position, "table": table, "total": table.sum(axis=0)}

    def step(rng, state, h, estimator):
        position, table, total = state["position"], state["table"].copy(), state["total"]
        x, rebuild = ravel(position)
        if terms is None:
            slope = ravel(estimator.estimate(rng, (), position)[0].gradient)[0]
        else:
            index = rng.integers(terms.size, size=count)
            fresh = gradients(position, index)
            change = np.sum(fresh - table[index], axis=0)
            slope = ravel(of_prior(position))[0] + terms.size / count * change + total
            table[index] = fresh
            total = total + change
        x = x - h * slope + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        return {"position": rebuild(x), "table": table, "total": total}

    return simple_sampler(step, init=init, backend="host")
