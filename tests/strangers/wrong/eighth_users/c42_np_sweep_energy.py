"""Componentwise Metropolis with one energy per test; a generator of proposals is prepared for the whole sweep."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def accept(rng, current, proposed):
    return proposed < current or rng.random() < np.exp(current - proposed)


def sweep(rng, x, h, estimator):
    def energy(q):
        return float(estimator.estimate(rng, (), q)[0].potential)

    theta = np.array(x, copy=True)
    shape = theta.shape
    theta = theta.reshape(-1)
    current = energy(x)
    for i in range(theta.size):
        trial = theta.copy()
        trial[i] += rng.normal(0.0, np.sqrt(2 * h))
        if accept(rng, current, energy(trial.reshape(shape))):
            theta = trial
    return theta.reshape(shape)


componentwise = simple_sampler(sweep, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
