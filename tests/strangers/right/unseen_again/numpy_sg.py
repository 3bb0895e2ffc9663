"""Stochastic-gradient samplers for our CPU cluster (NumPy)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


def tmap(fn, tree, *rest):
    """map over nested dicts, lists, tuples and namedtuples of arrays"""
    if isinstance(tree, dict):
        return {k: tmap(fn, tree[k], *(r[k] for r in rest)) for k in tree}
    if isinstance(tree, (list, tuple)):
        out = [tmap(fn, *leaves) for leaves in zip(tree, *rest)]
        if hasattr(tree, "_fields"):
            return type(tree)(*out)
        return type(tree)(out)
    return fn(tree, *rest)


class MTSState(NamedTuple):
    position: np.ndarray
    momentum: np.ndarray


@dataclass
class MultipleTimeStep:
    """Reversible RESPA with Langevin in the inner loop: the spring k |x|^2 / 2 is cheap and is done n_inner times,
    what is left of the potential, U - k |x|^2 / 2, once at each end."""

    spring: float = 0.5
    n_inner: int = 3
    gamma: float = 1.0

    backend = "host"

    def init(self, rng, position, estimator):
        x = np.array(position)
        return MTSState(x, rng.standard_normal(x.shape).astype(x.dtype))

    def slow_force(self, rng, x, estimator):
        return self.spring * x - np.asarray(estimator.estimate(rng, (), x)[0].gradient)

    def step(self, rng, state, step_size, estimator):
        x, p = state.position, state.momentum
        dtype = x.dtype
        dt = step_size / self.n_inner
        c = np.exp(-self.gamma * dt)
        s = np.sqrt(-np.expm1(-2 * self.gamma * dt))
        p = p + step_size / 2 * self.slow_force(rng, x, estimator)
        for _ in range(self.n_inner):
            p = p - dt / 2 * self.spring * x
            x = x + dt / 2 * p
            p = c * p + s * rng.standard_normal(p.shape)
            x = x + dt / 2 * p
            p = p - dt / 2 * self.spring * x
        p = p + step_size / 2 * self.slow_force(rng, x, estimator)
        return MTSState(x.astype(dtype), p.astype(dtype))


class SGLDWithMean:
    """SGLD; every step draws n_batches minibatches of its own and averages their gradients. Keeps the posterior
    mean on the way (for the report only)."""

    backend = "host"

    def __init__(self, n_batches=3):
        self.n_batches = n_batches

    def init(self, rng, position, estimator):
        return {"weights": position, "posterior_mean": tmap(np.array, position), "count": 1}

    def position(self, state):
        return state["weights"]

    def step(self, rng, state, step_size, estimator):
        weights = state["weights"]
        total = tmap(np.zeros_like, weights)
        for _ in range(self.n_batches):
            gradient = estimator.estimate(rng, (), weights)[0].gradient
            total = tmap(lambda t, g: t + np.asarray(g), total, gradient)

        def update(w, t):
            noise = rng.standard_normal(np.shape(w))
            new = w - step_size * t / self.n_batches + np.sqrt(2 * step_size) * noise
            return np.asarray(new, dtype=np.asarray(w).dtype)

        new = tmap(update, weights, total)
        count = state["count"] + 1
        mean = tmap(lambda m, w: (m + (w - m) / count).astype(np.asarray(w).dtype), state["posterior_mean"], new)
        return {"weights": new, "posterior_mean": mean, "count": count}
