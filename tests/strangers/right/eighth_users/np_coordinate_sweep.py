"""Metropolis within Gibbs: every coordinate in turn gets a Gaussian proposal and its own test."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def sweep(rng, x, h, estimator):
    x = x.copy()
    flat = x.reshape(-1)  # a view
    energy = estimator.estimate(rng, (), x)[0].potential
    moves = np.sqrt(2 * h) * rng.standard_normal(flat.size)
    levels = np.log(rng.random(flat.size))
    for i in range(flat.size):
        old = flat[i]
        flat[i] = old + moves[i]
        proposed = estimator.estimate(rng, (), x)[0].potential
        if levels[i] < energy - proposed:
            energy = proposed
        else:
            flat[i] = old
    return x


componentwise = simple_sampler(sweep, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
