"""Metropolis for positive parameters: a random walk of u, x = log(1 + exp(u))."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, x, step_size, estimator):
    u = np.log(np.expm1(x))
    v = u + np.sqrt(2 * step_size) * rng.standard_normal(np.shape(x))
    y = np.logaddexp(0.0, v)
    energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
    log_ratio = energy(x) - energy(y) + np.sum(np.log(y) - np.log(x))  # the Jacobian of the map
    return y if np.log(rng.random()) < log_ratio else x


walk = simple_sampler(
    step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)), backend="host"
)
