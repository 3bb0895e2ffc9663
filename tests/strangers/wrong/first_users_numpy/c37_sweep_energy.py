"""Metropolis within Gibbs, a sweep over all coordinates a step."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, x, step_size, estimator):
    x = np.array(x, dtype=float)
    energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
    current = energy(x)
    for i in range(x.size):
        y = x.copy()
        y.flat[i] += np.sqrt(2 * step_size) * rng.standard_normal()
        if np.log(rng.random()) < current - energy(y):
            x = y
    return x


sweep = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
