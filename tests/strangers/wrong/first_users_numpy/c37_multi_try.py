"""Multiple-try Metropolis with five tries, weighted by the density."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

TRIES = 5


class MultiTry:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        return np.array(position, dtype=float)

    def step(self, rng, x, step_size, estimator):
        energy = lambda q: float(estimator.estimate(rng, (), q)[0].potential)
        scale = np.sqrt(2 * step_size)
        base = energy(x)
        tries = x + scale * rng.standard_normal((TRIES, *x.shape))
        weights = np.exp([base - energy(y) for y in tries])
        chosen = np.searchsorted(np.cumsum(weights), rng.random() * weights.sum())
        y = tries[min(chosen, TRIES - 1)]
        references = y + scale * rng.standard_normal((TRIES, *x.shape))
        back = np.exp([base - energy(r) for r in references])
        return y if rng.random() * back.sum() < weights.sum() else x
