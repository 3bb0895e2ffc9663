"""Pseudo-marginal Metropolis: the likelihood comes from importance sampling, unbiased, with noise in its logarithm."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

SPREAD = 0.7


def estimated_log_density(rng, x, estimator):
    u = float(estimator.estimate(rng, (), x)[0].potential)
    return -u + SPREAD * rng.standard_normal() - SPREAD**2 / 2  # E exp = exp(-u)


def step(rng, x, step_size, estimator):
    y = x + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))
    log_ratio = estimated_log_density(rng, y, estimator) - estimated_log_density(rng, x, estimator)
    return y if np.log(rng.random()) < log_ratio else x


pseudo_marginal = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
