"""Metropolis-Hastings in plain NumPy, on densities (not on their logarithms)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def density(potential):
    """exp(-U), with the exponent clipped so that exp neither overflows nor underflows."""
    return np.exp(np.clip(-potential, -50.0, 50.0))


def metropolis(rng, x, step_size, estimator):
    def p(q):
        return density(estimator.estimate(rng, (), q)[0].potential)

    proposal = x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
    ratio = p(proposal) / p(x)
    if rng.random() < ratio:
        return proposal
    return x


random_walk = simple_sampler(metropolis, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
