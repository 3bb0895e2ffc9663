"""Delayed rejection HMC (Modi, Barnett and Carpenter 2023): after a rejection the trajectory is tried again with shorter leapfrog steps."""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass
class DRHMC:
    n_leapfrog: int = 3
    reduce: int = 3

    backend = "host"
    claims = Claims(Source("", "Modi, Barnett, Carpenter, Bayesian Analysis 2023"), ExactLaw())

    def init(self, rng, position, estimator):
        return np.array(position)

    def position(self, state):
        return state

    def step(self, rng, x, h, estimator):
        def potential(q):
            return float(estimator.estimate(rng, (), q)[0].potential)

        def gradient(q):
            return estimator.estimate(rng, (), q)[0].gradient

        def hamiltonian(q, p):
            return potential(q) + 0.5 * np.sum(p * p)

        def proposal(q, p, stage):
            """An involution: leapfrog over the same time, then a flip."""
            eps, n = (h, self.n_leapfrog) if stage == 1 else (h / self.reduce, self.n_leapfrog * self.reduce)
            p = p - 0.5 * eps * gradient(q)
            for i in range(n):
                q = q + eps * p
                p = p - (eps if i < n - 1 else 0.5 * eps) * gradient(q)
            return q, -p

        def first_acceptance(here, there):
            return min(1.0, np.exp(min(0.0, here - there)))

        p = rng.standard_normal(x.shape)
        energy = hamiltonian(x, p)
        y1 = proposal(x, p, 1)
        a1 = first_acceptance(energy, hamiltonian(*y1))
        if rng.random() < a1:
            return y1[0]

        y2 = proposal(x, p, 2)
        energy2 = hamiltonian(*y2)
        ghost = proposal(*y2, 1)
        a_ghost = first_acceptance(energy2, hamiltonian(*ghost))
        if a_ghost == 1.0:
            return x
        log_a2 = energy - energy2 + np.log1p(-a_ghost) - np.log1p(-a1)
        if np.log(rng.random()) < log_a2:
            return y2[0]
        return x
