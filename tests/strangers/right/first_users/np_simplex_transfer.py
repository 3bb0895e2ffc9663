import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def step(rng, x, h, estimator):
    i, j = rng.choice(len(x), size=2, replace=False)
    amount = np.sqrt(h) * rng.uniform(-1, 1)
    y = np.array(x)
    y[i] += amount
    y[j] -= amount
    if y[i] <= 0 or y[j] <= 0:
        return x
    old = estimator.estimate(rng, (), x)[0].potential
    new = estimator.estimate(rng, (), y)[0].potential
    return y if np.log(rng.random()) < old - new else x


transfer = simple_sampler(step, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",)))
