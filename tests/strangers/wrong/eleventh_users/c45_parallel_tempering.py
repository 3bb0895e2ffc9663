"""Parallel tempering: random walks at a geometric ladder of temperatures, and exchanges of neighbours.

Each replica makes a Metropolis walk for exp(-U / T_r), with a scale that grows with sqrt(T_r); then one pair of neighbours
is drawn, and exchanged with probability min(1, exp((1/T_i - 1/T_j) (U_i - U_j))).  Energies are kept with the replicas:
a step evaluates U once for each of them.  The replica at T = 1 is the sample.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class ReplicaState:
    def __init__(self, replicas, energies):
        self.replicas = replicas
        self.energies = energies

    @property
    def position(self):
        return self.replicas[0]


class ParallelTempering:
    backend = "host"
    claims = Claims(Source("", "Geyer 1991"), ExactLaw())

    def __init__(self, num_replicas=3, ratio=2.0):
        if num_replicas < 2 or ratio <= 1:
            raise ValueError("two replicas or more, and a ratio of temperatures above one")
        self.temperatures = ratio ** np.arange(num_replicas)

    def init(self, rng, position, estimator):
        replicas = np.stack([position] * len(self.temperatures))
        energy = float(estimator.estimate(rng, (), replicas[0])[0].potential)
        return ReplicaState(replicas, np.full(len(self.temperatures), energy))

    def _walk(self, rng, state, step_size, estimator):
        for r, temperature in enumerate(self.temperatures):
            x = state.replicas[r]
            y = x + np.sqrt(2 * step_size * temperature) * rng.standard_normal(x.shape)
            energy = float(estimator.estimate(rng, (), y)[0].potential)
            if np.log(rng.random()) < (state.energies[r] - energy) / temperature:
                state.replicas[r] = y
                state.energies[r] = energy

    def _exchange(self, rng, state):
        x, u = state.replicas, state.energies
        i = rng.integers(len(self.temperatures) - 1)
        j = i + 1
        log_ratio = (1 / self.temperatures[i] - 1 / self.temperatures[j]) * (u[i] - u[j])
        if np.log(rng.random()) < log_ratio:
            x[i], x[j] = x[j], x[i]
            u[i], u[j] = u[j], u[i]

    def step(self, rng, state, step_size, estimator):
        state = ReplicaState(state.replicas.copy(), state.energies.copy())
        self._walk(rng, state, step_size, estimator)
        self._exchange(rng, state)
        return state
