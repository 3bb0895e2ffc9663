"""MALTA: the Metropolis-adjusted Langevin algorithm with a truncated drift (Roberts and Tweedie 1996), in NumPy.

Proposals are y = x - h D(x) + N(0, 2 h), where

    D(x) = grad U(x) min(1, B / |grad U(x)|)

has at most the norm B, so that a chain far out does not shoot over. Energy and gradient of the current point are kept
from step to step, which makes a step cost one evaluation.
"""

from typing import NamedTuple

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class State(NamedTuple):
    position: np.ndarray
    energy: float
    drift: np.ndarray


def log_transition(to, start, drift, step_size):
    """Log density of the proposal `to` from `start`, up to a constant."""
    residual = to - start + step_size * drift
    return -np.sum(residual**2) / (4 * step_size)


class MALTA:
    """The sampler; `bound` is the largest norm of the drift."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, bound=10.0):
        if bound <= 0:
            raise ValueError("bound is positive")
        self.bound = bound

    def truncated(self, gradient):
        norm = np.sqrt(np.sum(gradient**2))
        return gradient * (self.bound / np.maximum(norm, self.bound))

    def init(self, rng, position, estimator):
        x = np.array(position)
        estimate = estimator.estimate(rng, (), x)[0]
        return State(x, estimate.potential, self.truncated(estimate.gradient))

    def step(self, rng, state, step_size, estimator):
        x, energy, drift = state
        y = x - step_size * drift + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
        estimate = estimator.estimate(rng, (), y)[0]
        log_ratio = (
            energy
            - estimate.potential
            + log_transition(x, y, estimate.gradient, step_size)
            - log_transition(y, x, drift, step_size)
        )
        if np.log(rng.random()) < log_ratio:
            return State(y, estimate.potential, self.truncated(estimate.gradient))
        return state
