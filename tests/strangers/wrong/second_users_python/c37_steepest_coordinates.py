# One coordinate at a time, and those with a large slope more often: they are the ones that are out of place.
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def pick(rng, gradient):
    weight = 1.0 + np.abs(gradient).ravel()
    return rng.choice(weight.size, p=weight / weight.sum())


def update(rng, x, h, estimator):
    now = estimator.estimate(rng, (), x)[0]
    i = pick(rng, np.asarray(now.gradient))
    y = x.copy()
    y.flat[i] += np.sqrt(2 * h) * rng.standard_normal()
    then = estimator.estimate(rng, (), y)[0]
    if -rng.exponential() < float(now.potential) - float(then.potential):
        return y
    return x


coordinates = simple_sampler(update, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
