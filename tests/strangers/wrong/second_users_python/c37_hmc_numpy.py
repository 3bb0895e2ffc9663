"""Plain Hamiltonian Monte Carlo in NumPy."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class HamiltonianMC:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, n_leapfrog=3):
        self.n_leapfrog = n_leapfrog

    def init(self, rng, position, estimator):
        return {"position": np.array(position, dtype=float)}

    def step(self, rng, state, eps, estimator):
        def evaluate(q):
            e = estimator.estimate(rng, (), q)[0]
            return float(e.potential), e.gradient

        x = state["position"]
        p = rng.standard_normal(x.shape)
        u, g = evaluate(x)
        energy = u + 0.5 * np.sum(p**2)

        q = x
        p -= 0.5 * eps * g
        for i in range(self.n_leapfrog):
            q += eps * p
            u, g = evaluate(q)
            if i < self.n_leapfrog - 1:
                p -= eps * g
        p -= 0.5 * eps * g

        if np.log(rng.random()) < energy - u - 0.5 * np.sum(p**2):
            return {"position": q}
        return {"position": x}


hmc = HamiltonianMC()
