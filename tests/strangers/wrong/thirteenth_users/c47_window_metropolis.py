"""Random-walk Metropolis whose proposal follows the shape of the target.

The first `memory` * d steps are those of a plain random walk with the variance 2 h. From then on the covariance of proposals is
(2.38^2 / d) times that of the most recent `memory` * d points of the chain, kept in a ring buffer, plus a small multiple of the identity
that keeps it regular. The memory is short on purpose: a chain that has started far out forgets the way in.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class WindowMetropolis:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, memory=10, factor=2.38, ridge=1e-6):
        if memory < 4 or factor <= 0 or ridge <= 0:
            raise ValueError("memory is 4 or more, factor and ridge are positive")
        self.memory = memory
        self.factor = factor
        self.ridge = ridge

    def init(self, rng, position, estimator):
        x = np.array(position)
        return {
            "position": x,
            "energy": self._energy(rng, x, estimator),
            "recent": np.zeros((self.memory * x.size, x.size), x.dtype),
            "count": 0,
        }

    def step(self, rng, state, h, estimator):
        x, energy, recent, count = state["position"], state["energy"], state["recent"], state["count"]
        proposal = x + self._increment(rng, x, h, recent, count)
        proposed = self._energy(rng, proposal, estimator)
        if np.log(rng.random()) < energy - proposed:
            x, energy = proposal, proposed
        recent = recent.copy()
        recent[count % len(recent)] = x.reshape(-1)
        return {"position": x, "energy": energy, "recent": recent, "count": count + 1}

    def _increment(self, rng, x, h, recent, count):
        noise = rng.standard_normal(x.size)
        if count < len(recent):
            return np.sqrt(2 * h) * noise.reshape(x.shape)
        centred = recent - recent.mean(axis=0)
        covariance = centred.T @ centred / (len(recent) - 1)
        scale = self.factor**2 / x.size
        root = np.linalg.cholesky(scale * covariance + self.ridge * np.eye(x.size))
        return (root @ noise).reshape(x.shape)

    @staticmethod
    def _energy(rng, x, estimator):
        return float(estimator.estimate(rng, (), x)[0].potential)
