import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, x, h, estimator):
    y = x * np.exp(np.sqrt(h) * rng.laplace(size=x.shape))
    log_ratio = (
        estimator.estimate(rng, (), x)[0].potential
        - estimator.estimate(rng, (), y)[0].potential
        + np.sum(np.log(y) - np.log(x))
    )
    return y if np.log(rng.random()) < log_ratio else x


positive = simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",)))
