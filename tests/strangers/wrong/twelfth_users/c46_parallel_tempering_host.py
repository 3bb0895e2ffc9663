"""Parallel tempering with random-walk Metropolis, in NumPy.

A ladder of replicas at inverse temperatures 1 = beta_0 > beta_1 > .. > beta_{K-1}. In each step every replica makes
a Metropolis move under exp(-beta_k U), with a walk that is wider where it is hotter; then a random pair of
neighbours on the ladder is proposed to change places (Geyer 1991; Earl and Deem 2005), with probability

    min(1, exp((beta_i - beta_j) (U(x_i) - U(x_j)))).

The replica at beta_0 is what is shown.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def geometric_ladder(levels, spacing):
    """Inverse temperatures 1, spacing, spacing^2, .."""
    return spacing ** np.arange(levels)


class ParallelTempering:
    """Replica exchange of `levels` replicas.

    levels            number of replicas, at least two
    spacing           ratio of neighbouring inverse temperatures
    swap_probability  chance that a step ends with an attempt to swap a random pair of neighbours
    """

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, levels=3, spacing=0.5, swap_probability=1.0):
        if levels < 2:
            raise ValueError("a ladder has at least two levels")
        if not 0 < spacing < 1:
            raise ValueError("spacing is between 0 and 1")
        if not 0 < swap_probability <= 1:
            raise ValueError("swap_probability is a probability, and not 0")
        self.levels = levels
        self.spacing = spacing
        self.swap_probability = swap_probability
        self.betas = geometric_ladder(levels, spacing)

    def init(self, rng, position, estimator):
        start = np.asarray(position)
        walkers = np.empty((self.levels, *start.shape), start.dtype)
        walkers[0] = start
        for k in range(1, self.levels):
            walkers[k] = rng.standard_normal(start.shape) / np.sqrt(self.betas[k])
        return {"walkers": walkers}

    def position(self, state):
        return state["walkers"][0].copy()

    def step(self, rng, state, step_size, estimator):
        walkers = state["walkers"].copy()
        energies = [self._energy(rng, x, estimator) for x in walkers]
        for k, beta in enumerate(self.betas):
            proposal = walkers[k] + np.sqrt(2 * step_size / beta) * rng.standard_normal(walkers[k].shape)
            energy = self._energy(rng, proposal, estimator)
            if np.log(rng.random()) < beta * (energies[k] - energy):
                walkers[k], energies[k] = proposal, energy
        if rng.random() < self.swap_probability:
            i = int(rng.integers(self.levels - 1))
            self._swap(rng, walkers, energies, i, i + 1)
        return {"walkers": walkers}

    def _swap(self, rng, walkers, energies, i, j):
        log_ratio = (self.betas[i] - self.betas[j]) * (energies[i] - energies[j])
        if np.log(rng.random()) < log_ratio:
            walkers[i], walkers[j] = walkers[j], walkers[i]

    @staticmethod
    def _energy(rng, x, estimator):
        return estimator.estimate(rng, (), x)[0].potential
