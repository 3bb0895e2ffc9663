# Multiple-try Metropolis (Liu, Liang, Wong 2000) with k symmetric proposals and weights w(y) = pi(y)
import numpy as np
from scipy.special import logsumexp, softmax

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

K = 8


def step(rng, x, h, estimator):
    log_pi = lambda q: -float(estimator.estimate(rng, (), q)[0].potential)
    around = lambda centre: [centre + np.sqrt(2 * h) * rng.standard_normal(x.shape) for _ in range(K)]

    tries = around(x)
    log_w = np.array([log_pi(y) for y in tries])
    y = tries[rng.choice(K, p=softmax(log_w))]

    reference = around(y)
    log_v = np.array([log_pi(z) for z in reference])
    if np.log(rng.random()) < logsumexp(log_w) - logsumexp(log_v):
        return y
    return x


mtm = simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw()))
