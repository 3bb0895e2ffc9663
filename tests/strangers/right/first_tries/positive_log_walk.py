import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, x, h, estimator):
    x = np.asarray(x)
    w = rng.uniform(-1.0, 1.0, size=x.shape)
    y = x * np.exp(np.sqrt(h) * w)
    old = float(estimator.estimate(rng, (), x)[0].potential)
    new = float(estimator.estimate(rng, (), y)[0].potential)
    log_ratio = old - new + np.sum(np.log(y) - np.log(x))
    if np.log(rng.uniform()) < log_ratio:
        return y
    return x


log_walk = simple_sampler(
    step, backend="host", claims=Claims(Source("metropolis1953", "section II"), ExactLaw(), spaces=("positive",))
)
