"""Scale-free Metropolis: a random walk of the logarithm of each coordinate, for parameters of unknown magnitude."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def multiplicative_step(rng, x, step_size, estimator):
    factors = np.exp(np.sqrt(2 * step_size) * rng.standard_normal(x.shape))
    y = x * factors
    old = estimator.estimate(rng, (), x)[0].potential
    new = estimator.estimate(rng, (), y)[0].potential
    log_jacobian = np.sum(np.log(factors))
    accept = np.log(rng.random()) < old - new + log_jacobian
    return y if accept else x


def scale_free(target):
    return simple_sampler(
        multiplicative_step, backend="host", claims=Claims(Source("", "own"), ExactLaw())
    )
