import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

WALKERS = 5


def init(rng, position, estimator):
    return np.stack([position] + [position + rng.standard_normal(position.shape) for _ in range(WALKERS - 1)])


def step(rng, walkers, h, estimator):
    walkers = np.array(walkers)
    gamma = 2.38 / np.sqrt(2 * walkers[0].size)
    for i in range(WALKERS):
        a, b = rng.choice([j for j in range(WALKERS) if j != i], size=2, replace=False)
        y = walkers[i] + gamma * (walkers[a] - walkers[b]) + np.sqrt(h) * rng.standard_normal(walkers[i].shape)
        old = estimator.estimate(rng, (), walkers[i])[0].potential
        new = estimator.estimate(rng, (), y)[0].potential
        if np.log(rng.random()) < old - new:
            walkers[i] = y
    return walkers


de_mc = simple_sampler(
    step,
    init=init,
    position=lambda walkers: walkers[0],
    claims=Claims(Source("", "ter Braak 2006"), ExactLaw()),
    backend="host",
)
