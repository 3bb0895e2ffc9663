"""Elliptical slice sampling against a prior N(m, 1)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

MEAN = 0.1


def step(rng, x, step_size, estimator):
    x = np.asarray(x, dtype=float)

    def log_likelihood(q):
        prior = -0.5 * np.sum((q - MEAN) ** 2)
        return -float(estimator.estimate(rng, (), q)[0].potential) - prior

    other = rng.standard_normal(x.shape)
    level = log_likelihood(x) + np.log(1 - rng.random())
    angle = 2 * np.pi * rng.random()
    low, high = angle - 2 * np.pi, angle
    while True:
        y = x * np.cos(angle) + other * np.sin(angle)
        if log_likelihood(y) > level:
            return y
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + (high - low) * rng.random()


ellipse = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
