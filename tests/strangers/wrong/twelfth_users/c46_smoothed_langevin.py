"""Langevin steps under a smoothing metric, in NumPy.

For positions whose neighbouring entries go together (a path, a field on a line) the gradient is smoothed by a fixed
matrix, the correlation of an autoregressive process, A_ij = rho^|i - j|:

    x' = x - h A grad U(x) + N(0, 2 h A)

A is positive definite and does not depend on x, so that no divergence enters and the law is the target's, up to O(h).
The noise is made from the Cholesky factor of A.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


def correlation(size, rho):
    """rho^|i - j|, the correlation matrix of an autoregressive process."""
    lags = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return rho**lags


@lru_cache(maxsize=32)
def metric(size, rho):
    """The metric and its Cholesky factor."""
    matrix = correlation(size, rho)
    return matrix, np.linalg.cholesky(matrix)


@dataclass(frozen=True)
class SmoothedLangevin:
    """Preconditioned SGLD; `rho` is the correlation of neighbouring entries in the metric, 0 for plain SGLD."""

    backend = "host"

    rho: float = 0.5

    def __post_init__(self):
        if not -1 < self.rho < 1:
            raise ValueError("rho is between -1 and 1")

    def init(self, rng, position, estimator):
        return np.array(position)

    def position(self, state):
        return state

    def step(self, rng, state, step_size, estimator):
        matrix, root = metric(state.size, self.rho)
        gradient = estimator.estimate(rng, (), state)[0].gradient
        drift = np.ravel(gradient) @ matrix
        noise = rng.standard_normal(state.size) @ root
        move = np.sqrt(2 * step_size) * noise - step_size * drift
        return state + np.reshape(move, state.shape)
