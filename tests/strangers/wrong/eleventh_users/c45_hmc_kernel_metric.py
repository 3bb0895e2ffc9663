"""Hamiltonian Monte Carlo with a dense metric for ordered coordinates.

Coordinates that follow each other (states of a time series, cells of a line) are correlated a posteriori, and the
correlation decays with their distance.  The inverse mass matrix C is therefore an exponential covariance,
C_ij = rho^|i - j|, instead of one that is estimated in a warm-up.  Kinetic energy is p' C p / 2, momenta are N(0, C^-1),
the proposal is a number of leapfrog steps, and Metropolis' test makes the kernel exact.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.linalg

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@lru_cache(maxsize=8)
def inverse_mass(size, rho):
    """C, and its Cholesky factor."""
    lag = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    covariance = float(rho) ** lag
    return covariance, np.linalg.cholesky(covariance)


@dataclass
class Point:
    position: np.ndarray
    potential: float
    gradient: np.ndarray


def evaluate(estimator, rng, x):
    estimate = estimator.estimate(rng, (), x)[0]
    return Point(x, float(estimate.potential), np.asarray(estimate.gradient))


class KernelMetricHMC:
    """step_size is eps^2 / 2, with eps the step of the leapfrog, so that one step of it moves as far as Langevin's."""

    backend = "host"
    claims = Claims(Source("", "Neal 2011, section 4.1"), ExactLaw())

    def __init__(self, rho=0.5, num_leapfrog=4):
        if not 0 <= rho < 1:
            raise ValueError("rho has to be in [0, 1)")
        if num_leapfrog < 1:
            raise ValueError("at least one leapfrog step")
        self.rho = rho
        self.num_leapfrog = num_leapfrog

    def _momentum(self, rng, size):
        _, factor = inverse_mass(size, self.rho)
        return scipy.linalg.solve_triangular(factor, rng.standard_normal(size), lower=True)

    def _leapfrog(self, rng, point, p, eps, covariance, estimator):
        shape = point.position.shape
        p = p - eps / 2 * point.gradient.ravel()
        for i in range(self.num_leapfrog):
            x = point.position + eps * (covariance @ p).reshape(shape)
            point = evaluate(estimator, rng, x)
            p = p - (eps if i + 1 < self.num_leapfrog else eps / 2) * point.gradient.ravel()
        return point, p

    def step(self, rng, x, step_size, estimator):
        eps = np.sqrt(2 * step_size)
        covariance, _ = inverse_mass(x.size, self.rho)
        start = evaluate(estimator, rng, x)
        p = self._momentum(rng, x.size)
        energy = start.potential + p @ covariance @ p / 2
        end, q = self._leapfrog(rng, start, p, eps, covariance, estimator)
        change = end.potential + q @ covariance @ q / 2 - energy
        return end.position if np.log(rng.random()) < -change else x
