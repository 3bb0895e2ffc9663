"""Horowitz' generalised HMC: one leapfrog step after each partial refreshment of the momentum."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class GeneralisedHMC:
    """HMC that keeps most of its momentum from step to step."""

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, kept=0.8):
        self.kept = kept

    def init(self, rng, position, estimator):
        return {"position": np.array(position), "momentum": rng.standard_normal(np.shape(position))}

    def energy(self, rng, estimator, q, p):
        return estimator.estimate(rng, (), q)[0].potential + 0.5 * np.sum(p * p)

    def leapfrog(self, rng, estimator, q, p, eps):
        p = p - 0.5 * eps * estimator.estimate(rng, (), q)[0].gradient
        q = q + eps * p
        p = p - 0.5 * eps * estimator.estimate(rng, (), q)[0].gradient
        return q, p

    def step(self, rng, state, step_size, estimator):
        q, p = state["position"], state["momentum"]
        p = self.kept * p + np.sqrt(1 - self.kept**2) * rng.standard_normal(p.shape)
        q_new, p_new = self.leapfrog(rng, estimator, q, p, step_size)
        delta = self.energy(rng, estimator, q_new, p_new) - self.energy(rng, estimator, q, p)
        if np.log(rng.random()) < -delta:
            return {"position": q_new, "momentum": p_new}
        return {"position": q, "momentum": p}
