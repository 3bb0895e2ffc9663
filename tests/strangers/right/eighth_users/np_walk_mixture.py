"""Random walk with a mixture of scales, and now and then an independent proposal from a wide Gaussian."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

WIDTH = 2.5  # standard deviation of the independent proposal
SCALES = np.array([0.3, 1.0, 3.0])
WEIGHTS = np.array([0.25, 0.5, 0.25])
P_GLOBAL = 0.15


def log_q(x):
    return -0.5 * np.sum(x**2) / WIDTH**2


def step(rng, x, h, estimator):
    def energy(q):
        return estimator.estimate(rng, (), q)[0].potential

    if rng.random() < P_GLOBAL:
        y = WIDTH * rng.standard_normal(x.shape)
        log_ratio = energy(x) - energy(y) + log_q(x) - log_q(y)
    else:
        scale = rng.choice(SCALES, p=WEIGHTS) * np.sqrt(2 * h)
        y = x + scale * rng.standard_normal(x.shape)
        log_ratio = energy(x) - energy(y)
    return y if -rng.standard_exponential() < log_ratio else x


walk = simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
