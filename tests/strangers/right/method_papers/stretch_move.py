"""Affine invariant ensemble, stretch move (Goodman and Weare 2010), in the two halves of emcee (Foreman-Mackey et al. 2013)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

A = 2.0


class StretchEnsemble:
    backend = "host"
    claims = Claims(Source("", "Foreman-Mackey et al. 2013, Algorithm 3"), ExactLaw())

    def init(self, rng, position, estimator):
        x = np.asarray(position)
        half = x.size // 2 + 2  # more walkers than dimensions
        walkers = x + rng.standard_normal((2 * half, *x.shape))
        walkers[0] = x
        return {"walkers": walkers}

    def position(self, state):
        return state["walkers"][0]

    def step(self, rng, state, step_size, estimator):
        walkers = state["walkers"].copy()
        n, dim = len(walkers), walkers[0].size
        halves = np.arange(n // 2), np.arange(n // 2, n)
        for active, others in (halves, halves[::-1]):
            partner = walkers[rng.choice(others, size=len(active))]
            # g(z) ~ 1 / sqrt(z) on [1/a, a]
            z = ((A - 1) * rng.random(len(active)) + 1) ** 2 / A
            log_u = np.log(rng.random(len(active)))
            for k, i in enumerate(active):
                old = walkers[i]
                new = partner[k] + z[k] * (old - partner[k])
                before = estimator.estimate(rng, (), old)[0].potential
                after = estimator.estimate(rng, (), new)[0].potential
                if log_u[k] < (dim - 1) * np.log(z[k]) + before - after:
                    walkers[i] = new
        return {"walkers": walkers}
