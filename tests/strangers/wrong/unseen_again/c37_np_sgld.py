"""Stochastic-gradient samplers in NumPy: minibatches in epochs, several blocks, constants worked out once."""

import jax
import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

CLAIMS = Claims(Source("", "own"), StationaryLaw(order=1))


def leaves_of(tree):
    leaves, treedef = jax.tree.flatten(tree)
    return [np.asarray(leaf) for leaf in leaves], treedef


# ---------------------------------------------------------- blocks


def _blocks(rng, position, step_size, estimator):
    """SGLD; the noise of each block comes from a generator that starts at the seed of the step."""
    gradient = leaves_of(estimator.estimate(rng, (), position)[0].gradient)[0]
    leaves, treedef = leaves_of(position)
    seed = int(rng.integers(2**31))
    moved = []
    for x, g in zip(leaves, gradient):
        noise = np.random.default_rng(seed).standard_normal(x.shape)
        moved.append((x - step_size * g + np.sqrt(2 * step_size) * noise).astype(x.dtype))
    return jax.tree.unflatten(treedef, moved)


blocks = simple_sampler(_blocks, claims=CLAIMS, backend="host")


# ---------------------------------------------------------- constants worked out once


class Ornstein:
    """Underdamped Langevin, Euler in momentum; the scale of the noise is found in the first step."""

    backend = "host"
    claims = CLAIMS

    def __init__(self, friction=2.0, temperature=1.0):
        self.friction, self.temperature = friction, temperature
        self._std = None

    def init(self, rng, position, estimator):
        leaves, treedef = leaves_of(position)
        momentum = [np.sqrt(self.temperature) * rng.normal(size=x.shape).astype(x.dtype) for x in leaves]
        return {"q": position, "p": jax.tree.unflatten(treedef, momentum)}

    def position(self, state):
        return state["q"]

    def step(self, rng, state, step_size, estimator):
        gradient = leaves_of(estimator.estimate(rng, (), state["q"])[0].gradient)[0]
        q, treedef = leaves_of(state["q"])
        p, _ = leaves_of(state["p"])
        if self._std is None:
            self._std = np.sqrt(2 * self.friction * self.temperature * step_size)
        p = [
            (b - step_size * (g + self.friction * b) + self._std * rng.normal(size=b.shape)).astype(b.dtype)
            for b, g in zip(p, gradient)
        ]
        q = [(a + step_size * b).astype(a.dtype) for a, b in zip(q, p)]
        return {"q": jax.tree.unflatten(treedef, q), "p": jax.tree.unflatten(treedef, p)}


# ---------------------------------------------------------- epochs


class _Epochs:
    """SGLD over shuffled minibatches of the data of a target, each datum once an epoch."""

    backend = "host"
    claims = CLAIMS

    def __init__(self, target, parts):
        self.target = target
        if target.terms is not None:
            self.batch = max(1, target.terms.size // parts)
            terms = target.terms
            self.prior = jax.jit(jax.grad(terms.prior))
            self.datum = jax.jit(jax.grad(terms.datum))

    def init(self, rng, position, estimator):
        return {"theta": position, "order": self.shuffled(rng)}

    def shuffled(self, rng):
        size = self.target.terms.size if self.target.terms is not None else 1
        order = np.arange(size)
        for i in range(size - 1, 0, -1):
            j = int(rng.integers(0, i + 1))
            order[i], order[j] = order[j], order[i]
        return order

    def position(self, state):
        return state["theta"]

    def step(self, rng, state, step_size, estimator):
        theta, order = state["theta"], state["order"]
        if self.target.terms is None:
            gradient, _ = leaves_of(estimator.estimate(rng, (), theta)[0].gradient)
        else:
            terms = self.target.terms
            if len(order) == 0:
                order = self.shuffled(rng)
            now, order = order[: self.batch], order[self.batch :]
            gradient = leaves_of(self.prior(theta))[0]
            weight = terms.size / self.batch
            for i in now:
                one = leaves_of(self.datum(theta, jax.tree.map(lambda a, i=i: a[int(i)], terms.data)))[0]
                gradient = [g + weight * e for g, e in zip(gradient, one)]
        x, treedef = leaves_of(theta)
        moved = [
            (a - step_size * g + np.sqrt(2 * step_size) * rng.normal(size=a.shape)).astype(a.dtype)
            for a, g in zip(x, gradient)
        ]
        return {"theta": jax.tree.unflatten(treedef, moved), "order": order}


def epochs(target, parts=8):
    """An epoch is cut into that many parts, and a rest."""
    return _Epochs(target, parts)
