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
# BAOAB with the force kept from step to step: the last kick of a step and the first of the next are at the same point, so one
# gradient a step is enough. B(h/2) A(h/2) O(h) A(h/2) B(h/2): kicks, drifts, exact Ornstein-Uhlenbeck flow; a palindrome of
# flows of which each keeps its part, so the law is right to order 2 (positions of BAOAB: known to be better on Gaussians).
# The force of the state is never written to: kicks multiply into new arrays.


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
        force = state.force
        p = state.momentum + 0.5 * h * force
        x = x + 0.5 * h * p
        kept = np.exp(-self.friction * h)
        p = kept * p + np.sqrt(1 - kept**2) * rng.standard_normal(p.shape)
        x = x + 0.5 * h * p
        position = rebuild(x)
        force = self._force(rng, position, estimator)
        p = p + 0.5 * h * force
        return Phase(position, p.astype(force.dtype), force)


# ---------------------------------------------------------------------------------------------------------------------
# ABOBA with a mass for each layer (leaf of the position): momenta N(0, m), velocity p / m, friction by the factor exp(-c h) for
# all. A(h/2) B(h/2) O(h) B(h/2) A(h/2), both kicks at the same point, one gradient. exp(-U - sum p^2 / 2m) is kept by each
# flow in its part: O with noise of variance (1 - exp(-2 c h)) m has the law N(0, m). A palindrome: order 2. One thermostat is
# made for each layer; `m=m` binds the mass of its own layer.


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
            lambda p, m=m: kept * p + np.sqrt((1 - kept**2) * m) * rng.standard_normal(np.shape(p)) for m in masses
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
# Zig-zag process with normal velocities, split: refresh each velocity with the rate `renewal`, drift h/2, flips for the time h
# at a fixed gradient g, drift h/2. Coordinate i flips at the rate (v_i g_i)_+, and not again once it goes downhill, so that the
# jumps can be drawn one by one: a time of the total rate, a coordinate in proportion to its rate. exp(-U) N(v; 0, I) is kept by
# the whole process, (v_i g_i)_+ - (-v_i g_i)_+ = v_i g_i, and refreshing keeps it; drift - flips - drift is a palindrome, whose
# law is right to O(h^2) but at kinks; order 1 is what is claimed. Python's own generator, seeded by that of the step.


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
            i = dice.choices(range(len(v)), weights=rates)[0]
            v[i] = -v[i]
            rates[i] = 0.0

        v = np.array(v)
        return {"position": rebuild(x + 0.5 * h * v), "velocity": v}

    return simple_sampler(step, init=init, backend="host")


# ---------------------------------------------------------------------------------------------------------------------
# Underdamped dynamics on data in two batches an epoch: an order of all rows is drawn at the start of an epoch, the first two
# thirds (rounded up) are a batch, what is left the short second one. Sums over a batch are multiplied by N / (rows in it): each
# batch alone, a uniform set of its size under a random order, has the mean of all data. Kick, friction and noise, drift; the
# noise of batches enters the law at O(h), as does the scheme: order 1. Without data the estimator is asked.


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
            slope = slope + size / len(index) * ravel(of_rows(state["position"], rows))[0]
            done = done + len(index)
        kept = np.exp(-friction * h)
        p = kept * (state["momentum"] - h * slope)
        p = (p + np.sqrt(1 - kept**2) * rng.standard_normal(p.shape)).astype(x.dtype)
        return {"position": rebuild(x + h * p), "momentum": p, "order": order, "done": done}

    return simple_sampler(step, init=init, backend="host")


# ---------------------------------------------------------------------------------------------------------------------
# SAGA: the table holds the last gradient that was seen of each row, `total` its sum. Two DIFFERENT rows are drawn (without
# replacement), the estimate is prior + N/2 sum (new - old) + total, unbiased whatever the table holds as long as total is
# its sum, and after the update it is again. Langevin step; the variance of the estimate enters the law at O(h).


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
            index = rng.choice(terms.size, size=count, replace=False)
            fresh = gradients(position, index)
            change = np.sum(fresh - table[index], axis=0)
            slope = ravel(of_prior(position))[0] + terms.size / count * change + total
            table[index] = fresh
            total = total + change
        x = x - h * slope + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        return {"position": rebuild(x), "table": table, "total": total}

    return simple_sampler(step, init=init, backend="host")
