"""Random-walk Metropolis whose scale follows the one-fifth success rule, started at sqrt(2 h)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

GROW, SHRINK = 0.4, 0.1  # in the logarithm of the scale: at rest at one acceptance in five


class AdaptiveWalk:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a single array, please")
        return {"position": np.array(position), "log_factor": np.zeros(())}

    def step(self, rng, state, h, estimator):
        x, log_factor = state["position"], state["log_factor"]
        scale = np.sqrt(2 * h) * np.exp(log_factor)
        y = x + scale * rng.standard_normal(x.shape)
        old = estimator.estimate(rng, (), x)[0].potential
        new = estimator.estimate(rng, (), y)[0].potential
        if np.log(rng.random()) < old - new:
            return {"position": y, "log_factor": np.asarray(log_factor + GROW)}
        return {"position": x, "log_factor": np.asarray(log_factor - SHRINK)}
