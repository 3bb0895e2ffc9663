"""Differential evolution MCMC with snooker updates, a few walkers on one density (ter Braak and Vrugt, 2008).

One step is a sweep over the walkers. A walker either adds the scaled difference of two others, on a random subset of its
coordinates, plus a small Gaussian jitter; or it moves along the line to a third walker, by the projected difference of two
more. Each update leaves the product of the densities of all walkers as it is, given the walkers that stand still.
"""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass
class Ensemble:
    walkers: list  # arrays, each of the shape of a position
    energies: list  # U at each of them
    accepted: int = 0


class DifferentialEvolution:
    backend = "host"
    claims = Claims(Source("", "ter Braak and Vrugt 2008"), ExactLaw())

    def __init__(self, walkers=6, snooker=0.2, crossover=0.6, hop=0.1, spread=1.0):
        if walkers < 4:
            raise ValueError("a snooker update needs three walkers beside the one that moves")
        for name, value in {"snooker": snooker, "hop": hop}.items():
            if not 0 <= value < 1:
                raise ValueError(f"{name} is a probability below one")
        if not 0 < crossover <= 1:
            raise ValueError("crossover is a probability")
        self.walkers = walkers
        self.snooker = snooker
        self.crossover = crossover
        self.hop = hop
        self.spread = spread

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("positions are arrays")
        walkers = [np.array(position)]
        for _ in range(self.walkers - 1):
            walkers.append(position + self.spread * rng.standard_normal(position.shape))
        energies = [self._energy(rng, estimator, x) for x in walkers]
        return Ensemble(walkers, energies)

    def position(self, state):
        return state.walkers[0]

    def step(self, rng, state, step_size, estimator):
        jitter = np.sqrt(2 * step_size)
        for i, x in enumerate(state.walkers):
            others = [j for j in range(len(state.walkers)) if j != i]
            a, b, c = (state.walkers[j] for j in rng.choice(others, size=3, replace=False))
            if rng.random() < self.snooker:
                y, bonus = self._along_line(rng, x, c, a - b)
            else:
                y, bonus = self._difference(rng, x, a - b, jitter), 0.0
            energy = self._energy(rng, estimator, y)
            if energy - state.energies[i] - bonus < rng.exponential():
                state.walkers[i] = y
                state.energies[i] = energy
                state.accepted += 1
        return state

    def _difference(self, rng, x, difference, jitter):
        chosen = np.array(rng.random(x.shape) < self.crossover)
        if not chosen.any():
            chosen.flat[rng.integers(x.size)] = True
        scale = 1.0 if rng.random() < self.hop else 2.38 / np.sqrt(2 * chosen.sum())
        return x + chosen * (scale * difference + jitter * rng.standard_normal(x.shape))

    @staticmethod
    def _along_line(rng, x, anchor, difference):
        """x moves along its line to the anchor; the density on that line has the factor distance^(d - 1)."""
        arm = x - anchor
        scale = rng.uniform(1.2, 2.2)
        moved = arm * (1 + scale * np.vdot(arm, difference) / np.vdot(arm, arm))
        bonus = (x.size - 1) * (np.log(np.linalg.norm(moved)) - np.log(np.linalg.norm(arm)))
        return anchor + moved, bonus

    @staticmethod
    def _energy(rng, estimator, x):
        return float(estimator.estimate(rng, (), x)[0].potential)
