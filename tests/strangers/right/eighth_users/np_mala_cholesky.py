"""MALA with a fixed dense preconditioner C = L L^T; energy and gradient are carried along.

y = x - h C grad U(x) + sqrt(2 h) L xi
"""

import functools

import numpy as np
from scipy.linalg import solve_triangular

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

DECAY = 0.5


@functools.lru_cache
def cholesky_factor(d):
    i = np.arange(d)
    return np.linalg.cholesky(DECAY ** np.abs(i[:, None] - i[None, :]))


class PreconditionedMALA:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray) or position.ndim != 1:
            raise TypeError("vectors only")
        e = estimator.estimate(rng, (), position)[0]
        return {"position": np.array(position), "energy": e.potential, "gradient": np.array(e.gradient)}

    @staticmethod
    def log_q(L, origin, gradient, end, h):
        r = solve_triangular(L, end - origin + h * (L @ (L.T @ gradient)), lower=True)
        return -np.dot(r, r) / (4 * h)

    def step(self, rng, state, h, estimator):
        x, g = state["position"], state["gradient"]
        L = cholesky_factor(x.size)
        y = x - h * (L @ (L.T @ g)) + np.sqrt(2 * h) * (L @ rng.standard_normal(x.size))
        e = estimator.estimate(rng, (), y)[0]
        log_ratio = (
            state["energy"] - e.potential
            + self.log_q(L, y, e.gradient, x, h)
            - self.log_q(L, x, g, y, h)
        )
        if np.log(rng.random()) < log_ratio:
            return {"position": y, "energy": e.potential, "gradient": np.array(e.gradient)}
        return state
