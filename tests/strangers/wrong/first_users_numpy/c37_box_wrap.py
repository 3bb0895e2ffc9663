"""SGLD on [0, 1]: reflected at 0, and back into the box at 1."""

import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def step(rng, x, h, estimator):
    g = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
    y = x - h * g + np.sqrt(2 * h) * rng.standard_normal(np.shape(x))
    return np.abs(y) % 1.0


box = simple_sampler(
    step, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("box",)), backend="host"
)
