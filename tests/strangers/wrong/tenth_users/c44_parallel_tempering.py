"""Parallel tempering: random-walk Metropolis on a ladder of temperatures, with exchanges between neighbours.

Rung k has the law exp(-beta_k U), beta_k = ratio^k; rung 0 is the target. A step moves each rung once, then goes up the ladder
and offers each pair of neighbours to change places.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Ladder:
    """Positions of all rungs, the coldest first."""

    def __init__(self, rungs):
        self.rungs = rungs

    @property
    def position(self):
        return self.rungs[0]


class ParallelTempering:
    backend = "host"
    claims = Claims(Source("", "Geyer (1991), Markov chain Monte Carlo maximum likelihood"), ExactLaw())

    def __init__(self, num_rungs=3, ratio=0.4):
        if num_rungs < 2:
            raise ValueError("a ladder has at least two rungs")
        if not 0 < ratio < 1:
            raise ValueError("ratio must lie between 0 and 1")
        self.betas = ratio ** np.arange(num_rungs)

    def init(self, rng, position, estimator):
        spread = 1 / np.sqrt(self.betas) - 1
        return Ladder([np.array(position) + s * rng.standard_normal(np.shape(position)) for s in spread])

    def _walk(self, rng, x, beta, step_size, energy):
        y = x + np.sqrt(2 * step_size / beta) * rng.standard_normal(x.shape)
        before, after = energy(x), energy(y)
        if np.log(rng.random()) < beta * (before - after):
            return y, after
        return x, before

    def step(self, rng, state, step_size, estimator):
        def energy(x):
            return float(estimator.estimate(rng, (), x)[0].potential)

        moved = [self._walk(rng, x, beta, step_size, energy) for x, beta in zip(state.rungs, self.betas, strict=True)]
        rungs, energies = [x for x, _ in moved], [u for _, u in moved]
        for k in range(len(rungs) - 1):
            log_ratio = (self.betas[k] - self.betas[k + 1]) * (energies[k] - energies[k + 1])
            if np.log(rng.random()) < log_ratio:
                rungs[k], rungs[k + 1] = rungs[k + 1], rungs[k]
        return Ladder(rungs)
