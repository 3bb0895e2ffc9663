"""HMC with a fixed number of leapfrog steps of length sqrt(2 h), so that one of them is MALA."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

LEAPFROGS = 3


class HMC:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def leapfrog(self, rng, q, p, eps, estimator):
        p -= 0.5 * eps * estimator.estimate(rng, (), q)[0].gradient
        for i in range(LEAPFROGS):
            q += eps * p
            kick = eps if i + 1 < LEAPFROGS else 0.5 * eps
            p -= kick * estimator.estimate(rng, (), q)[0].gradient
        return q, p

    def hamiltonian(self, rng, q, p, estimator):
        return estimator.estimate(rng, (), q)[0].potential + 0.5 * np.sum(p * p)

    def step(self, rng, x, h, estimator):
        p = np.asarray(rng.standard_normal(x.shape))
        before = self.hamiltonian(rng, x, p, estimator)
        q, p = self.leapfrog(rng, x, p, np.sqrt(2 * h), estimator)
        after = self.hamiltonian(rng, q, p, estimator)
        return q if np.log(rng.random()) < before - after else x
