"""Slice sampling in NumPy, coordinate by coordinate, with stepping out and shrinkage."""

import numpy as np

from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler


def _potential(rng, estimator, x):
    return float(estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential)


def _slice(ends):
    """A sweep whose first interval about t is (t - a w, t + b w) with (a, b) = `ends(u)`, u uniform."""

    def step(rng, x, step_size, estimator):
        x = np.array(x)
        width = 4 * np.sqrt(2 * step_size)
        for i in range(x.size):

            def log_density(t, i=i):
                y = x.copy()
                y[i] = t
                return -_potential(rng, estimator, y)

            level = log_density(x[i]) - rng.exponential()
            left, right = ends(rng.random())
            low, high = x[i] - left * width, x[i] + right * width
            while log_density(low) > level:
                low -= width
            while log_density(high) > level:
                high += width
            t = rng.uniform(low, high)
            while log_density(t) <= level:
                low, high = (t, high) if t < x[i] else (low, t)
                t = rng.uniform(low, high)
            x[i] = t
        return x

    return simple_sampler(step, needs=("potential",), backend="host")


# The interval reaches a whole width to the right, and a random part of it to the left.
pymc_5816_before = _slice(lambda u: (u, 1.0))
pymc_5816_after = _slice(lambda u: (u, 1 - u))
