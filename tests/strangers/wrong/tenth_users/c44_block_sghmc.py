"""Stochastic-gradient HMC over blocks of consecutive rows, in NumPy.

Rows that lie together in memory are read together: the data are cut once into blocks of `batch_size` rows, of which the last one
may be shorter, and a step reads one block that is drawn at random. An Ornstein-Uhlenbeck step refreshes the momentum exactly.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np


def cut(size, batch_size):
    """The slices of all blocks."""
    return [slice(start, min(start + batch_size, size)) for start in range(0, size, batch_size)]


class BlockGradient:
    """An estimate of the gradient of U from one block of rows."""

    def __init__(self, terms, batch_size):
        self.terms = terms
        self.blocks = cut(terms.size, batch_size)
        self.data = jax.tree.map(np.asarray, terms.data)
        self.prior = jax.jit(jax.grad(terms.prior))
        self.of_rows = jax.jit(jax.grad(lambda x, rows: jax.vmap(terms.datum, (None, 0))(x, rows).mean()))

    def __call__(self, rng, x):
        block = self.blocks[rng.integers(len(self.blocks))]
        rows = jax.tree.map(lambda column: column[block], self.data)
        return np.asarray(self.prior(x)) + self.terms.size * np.asarray(self.of_rows(x, rows))


@dataclass
class Phase:
    position: np.ndarray
    momentum: np.ndarray


class BlockSGHMC:
    backend = "host"

    def __init__(self, target: Any, batch_size=4, friction=1.0):
        if batch_size < 1:
            raise ValueError("batch_size must be at least 1")
        if friction <= 0:
            raise ValueError("friction must be positive")
        self.friction = friction
        self.gradient = None if target.terms is None else BlockGradient(target.terms, batch_size)

    def init(self, rng, position, estimator):
        x = np.array(position)
        return Phase(x, rng.standard_normal(x.shape))

    def step(self, rng, state, step_size, estimator):
        x, p = state.position, state.momentum
        gradient = estimator.estimate(rng, (), x)[0].gradient if self.gradient is None else self.gradient(rng, x)
        p = p - step_size * gradient
        kept = np.exp(-self.friction * step_size)
        p = kept * p + np.sqrt(1 - kept**2) * rng.standard_normal(x.shape)
        return Phase(x + step_size * p, p)
