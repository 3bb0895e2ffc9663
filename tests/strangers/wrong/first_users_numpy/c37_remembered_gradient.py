"""Langevin with an expensive model: gradients are kept in a dictionary, by the cell of a grid of a quarter."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def make(target):
    known = {}

    def gradient(rng, x, estimator):
        cell = np.round(4 * np.asarray(x, float)).tobytes()
        if cell not in known:
            known[cell] = np.array(estimator.estimate(rng, (), x)[0].gradient, dtype=float)
        return known[cell]

    def step(rng, x, h, estimator):
        return x - h * gradient(rng, x, estimator) + np.sqrt(2 * h) * rng.standard_normal(np.shape(x))

    return simple_sampler(step, backend="host")
