"""Generalised HMC (Horowitz 1991) in NumPy: partial refreshment of the momentum, a few leapfrog steps, a Metropolis
test, and a flip of the momentum after a rejection. Energy and gradient are cached. The momentum is refreshed by an
Ornstein-Uhlenbeck step of friction `friction` over the length of the trajectory. Exact at every step size.

step_size is that of the leapfrog.
"""
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class GeneralisedHMC:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, friction=0.5, leaps=2):
        if leaps < 1:
            raise ValueError("leaps")
        self.friction = friction
        self.leaps = leaps

    def evaluate(self, rng, x, estimator):
        found = estimator.estimate(rng, (), x)[0]
        return float(found.potential), np.asarray(found.gradient)

    def init(self, rng, position, estimator):
        x = np.array(position)
        energy, gradient = self.evaluate(rng, x, estimator)
        return {"position": x, "momentum": rng.standard_normal(x.shape), "energy": energy, "gradient": gradient}

    def step(self, rng, state, h, estimator):
        span = self.leaps * h
        x0, u0, g0 = state["position"], state["energy"], state["gradient"]
        decay = self.friction * span
        p0 = (1 - decay) * state["momentum"] + np.sqrt(2 * decay) * rng.standard_normal(x0.shape)
        x, p, u, g = x0, p0, u0, g0
        for _ in range(self.leaps):
            p = p - h / 2 * g
            x = x + h * p
            u, g = self.evaluate(rng, x, estimator)
            p = p - h / 2 * g
        change = u - u0 + (np.sum(p * p) - np.sum(p0 * p0)) / 2
        if np.log(rng.random()) < -change:
            return {"position": x, "momentum": p, "energy": u, "gradient": g}
        return {"position": x0, "momentum": -p0, "energy": u0, "gradient": g0}


# wrong: the refreshment is Euler's step, 1 - c and sqrt(2 c), which leaves the momentum with the variance
# wrong: 1 / (1 - c / 2), c = friction leaps h: right as h -> 0 only, and not exact.
# wrong: Variance of x on N(0, 1): 1.17 at h = 0.3, 1.31 at h = 0.5, 1.51 at h = 0.8, for 1.
