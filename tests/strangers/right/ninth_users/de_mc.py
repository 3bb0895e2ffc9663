"""Differential-evolution Markov chain (ter Braak 2006) with crossover, a handful of chains in one state.

    for each chain i in turn:  a, b two others at random;  y = x_i + M o (gamma (x_a - x_b) + e),  e ~ N(0, 2h)
    gamma = 2.38 / sqrt(2 |M|), or 1 in one of ten;  M a random mask (crossover);  accept with min(1, pi(y) / pi(x_i))

Right: given the other chains, mask and gamma do not depend on x_i and the proposal is symmetric ((a, b) is as likely as (b, a)),
so that each update keeps the product of pi over the chains.  e makes it irreducible with any number of chains.  Exact.
Object: DEMC (shows chain 0)
"""
import dataclasses

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

CHAINS = 6


@dataclasses.dataclass
class Population:
    members: list
    energies: list

    @property
    def position(self):
        return self.members[0]


@dataclasses.dataclass
class DEMC:
    crossover: float = 0.7

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __post_init__(self):
        if not 0 < self.crossover <= 1:
            raise ValueError("crossover is a probability")

    def init(self, rng, position, estimator):
        position = np.asarray(position)
        members = [position.copy()] + [position + rng.standard_normal(position.shape) for _ in range(CHAINS - 1)]
        return Population(members, [self._energy(rng, x, estimator) for x in members])

    @staticmethod
    def _energy(rng, x, estimator):
        return float(estimator.estimate(rng, (), x)[0].potential)

    def step(self, rng, state, step_size, estimator):
        members, energies = list(state.members), list(state.energies)
        for i in range(CHAINS):
            a, b = rng.choice([j for j in range(CHAINS) if j != i], size=2, replace=False)
            mask = rng.random(members[i].shape) < self.crossover
            moved = max(int(mask.sum()), 1)
            gamma = 1.0 if rng.random() < 0.1 else 2.38 / np.sqrt(2 * moved)
            jitter = np.sqrt(2 * step_size) * rng.standard_normal(members[i].shape)
            proposal = members[i] + mask * (gamma * (members[a] - members[b]) + jitter)
            energy = self._energy(rng, proposal, estimator)
            if np.log(rng.random()) < energies[i] - energy:
                members[i], energies[i] = proposal, energy
        return Population(members, energies)
