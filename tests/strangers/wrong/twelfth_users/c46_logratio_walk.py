"""A random walk in log ratios, for probabilities that sum to one, in NumPy.

A point x of the simplex is written in additive log ratios against its last entry, y_i = log(x_i / x_K), i < K, where
nothing is constrained. The walk proposes y + s N(0, I), s = sqrt(2 h) times an option, and is accepted by Metropolis'
rule for the density of y, which is that of x times the Jacobian of the map back (Aitchison 1986).
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def to_ratios(x):
    """Additive log ratios of a point of the simplex."""
    logs = np.log(x)
    return logs[:-1] - logs[-1]


def from_ratios(y):
    """The point of the simplex with these log ratios."""
    full = np.append(y, 0.0)
    weights = np.exp(full - np.max(full))
    return weights / np.sum(weights)


def log_jacobian(x):
    """log |dx / dy|, in the free entries of x."""
    return np.sum(np.log(x[:-1]))


class LogRatioWalk:
    """Random-walk Metropolis on the simplex; `spread` multiplies the proposals."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("simplex",))

    def __init__(self, spread=1.0):
        if spread <= 0:
            raise ValueError("spread is positive")
        self.spread = spread

    def init(self, rng, position, estimator):
        return np.array(position)

    def position(self, state):
        return state

    def log_density(self, rng, x, estimator):
        """Of the log ratios."""
        return log_jacobian(x) - estimator.estimate(rng, (), x)[0].potential

    def step(self, rng, state, step_size, estimator):
        y = to_ratios(state)
        proposal = from_ratios(y + self.spread * np.sqrt(2 * step_size) * rng.standard_normal(y.shape))
        gain = self.log_density(rng, proposal, estimator) - self.log_density(rng, state, estimator)
        return proposal if np.log(rng.random()) < gain else state
