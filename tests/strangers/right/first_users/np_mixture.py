import numpy as np

from sgmcmc_verification.samplers import simple_sampler

SCALE, DF = 2.0, 3


def log_q(x):
    return -(DF + 1) / 2 * np.sum(np.log1p((x / SCALE) ** 2 / DF))


def step(rng, x, h, estimator):
    U = lambda y: estimator.estimate(rng, (), y)[0].potential
    if rng.random() < 0.3:
        y = SCALE * rng.standard_t(DF, size=x.shape)
        log_ratio = U(x) - U(y) + log_q(x) - log_q(y)
    else:
        y = x + np.sqrt(2 * h) * rng.standard_normal(x.shape)
        log_ratio = U(x) - U(y)
    return y if np.log(rng.random()) < log_ratio else x


mixture = simple_sampler(step, backend="host")
