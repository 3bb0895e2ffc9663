"""SGLD for a job queue: each step gets a small integer seed, which is logged, so that any step can be replayed."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler

NUM_SEEDS = 1000


def draw_noise(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape)


def replayable_step(rng, theta, epsilon, estimator):
    gradient = estimator.estimate(rng, (), theta)[0].gradient
    seed = int(rng.integers(NUM_SEEDS))
    return theta - epsilon * gradient + np.sqrt(2 * epsilon) * draw_noise(seed, theta.shape)


replayable = simple_sampler(replayable_step, backend="host")
