"""One-at-a-time Metropolis on the unit cube (parameters are scaled to it), uniform proposals reflected at the walls."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


def reflect(t):
    t = abs(t) % 2.0
    return 2.0 - t if t > 1.0 else t


class ReflectedSweep:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("box",))

    def step(self, rng, x, step_size, estimator):
        U = lambda v: estimator.estimate(rng, (), v)[0].potential
        width = np.sqrt(6.0 * step_size)  # variance 2 * step_size
        x = np.array(x)
        current = U(x)
        for i in rng.permutation(x.size):
            old = x.flat[i]
            x.flat[i] = reflect(old + rng.uniform(-width, width))
            proposed = U(x)
            if np.log(rng.random()) < current - proposed:
                current = proposed
            else:
                x.flat[i] = old
        return x
