"""Metropolis on the simplex: one probability moves, the others keep their shares of what is left."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, x, step_size, estimator):
    x = np.asarray(x, dtype=float)
    i = rng.integers(x.size)
    new = x[i] + np.sqrt(2 * step_size) * rng.standard_normal()
    new = 1 - abs(1 - new % 2)  # folded into [0, 1]: symmetric
    if not 0 < new < 1:
        return x
    y = x * (1 - new) / (1 - x[i])
    y[i] = new
    energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
    return y if np.log(rng.random()) < energy(x) - energy(y) else x


shares = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",)), backend="host")
