"""SGLD with a table of normal numbers, standardised, that is entered at a random place (as old game code does)."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler

TABLE = np.random.default_rng(20240131).standard_normal(1024)
TABLE = (TABLE - TABLE.mean()) / TABLE.std()


def table_normal(rng, shape):
    size = int(np.prod(shape, dtype=int))
    return TABLE[(rng.integers(1024) + np.arange(size)) % 1024].reshape(shape)


def step(rng, x, h, estimator):
    g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
    return x - h * g + np.sqrt(2 * h) * table_normal(rng, np.shape(x))


sgld = simple_sampler(step, backend="host")
