"""Generalised HMC (Horowitz 1991) in plain NumPy, potential and gradient kept between steps, with an acceptance counter."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class GHMC:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, gamma=1.0):
        self.gamma = gamma

    def _evaluate(self, rng, x, estimator):
        est = estimator.estimate(rng, (), x)[0]
        return float(est.potential), np.array(est.gradient)

    def init(self, rng, position, estimator):
        x = np.array(position)
        u, g = self._evaluate(rng, x, estimator)
        return {"position": x, "p": rng.standard_normal(x.shape), "u": u, "g": g, "tried": 0, "accepted": 0}

    def step(self, rng, state, h, estimator):
        x, u, g = state["position"], state["u"], state["g"]
        keep = np.exp(-self.gamma * h)
        p = keep * state["p"] + np.sqrt(1 - keep**2) * rng.standard_normal(x.shape)

        p_half = p - 0.5 * h * g
        x_new = x + h * p_half
        u_new, g_new = self._evaluate(rng, x_new, estimator)
        p_new = p_half - 0.5 * h * g_new

        dH = u_new - u + 0.5 * (np.sum(p_new**2) - np.sum(p**2))
        state["tried"] += 1
        if rng.random() < np.exp(min(0.0, -dH)):
            state["accepted"] += 1
            state.update(position=x_new, p=p_new, u=u_new, g=g_new)
        else:
            state["p"] = -p
        return state
