"""HMC with full refreshment and a uniformly drawn number of leapfrog steps; buffers are reused within a step."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class JitteredHMC:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, max_leapfrogs=4):
        if max_leapfrogs < 1:
            raise ValueError("at least one leapfrog step")
        self.max_leapfrogs = int(max_leapfrogs)

    def step(self, rng, x, h, estimator):
        p = np.asarray(rng.standard_normal(x.shape))
        n = int(rng.integers(1, self.max_leapfrogs + 1))

        here = estimator.estimate(rng, (), x)[0]
        start = here.potential + 0.5 * np.vdot(p, p)

        q = np.array(x)  # a copy: x is returned when the trajectory is rejected
        p -= 0.5 * h * here.gradient
        for i in range(n):
            q += h * p
            there = estimator.estimate(rng, (), q)[0]
            p -= (h if i < n - 1 else 0.5 * h) * there.gradient

        end = there.potential + 0.5 * np.vdot(p, p)
        if np.log(rng.uniform()) < start - end:
            return q
        return x
