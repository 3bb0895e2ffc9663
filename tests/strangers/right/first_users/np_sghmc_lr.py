import numpy as np


class MomentumSGHMC:
    """SGHMC as in equation 15 of Chen et al. 2014: eta is the learning rate, alpha is one minus the momentum."""

    backend = "host"

    def __init__(self, alpha=0.1):
        self.alpha = alpha

    def init(self, rng, position, estimator):
        return {"position": position, "v": np.zeros_like(position)}

    def step(self, rng, state, eta, estimator):
        theta, v = state["position"], state["v"]
        g = estimator.estimate(rng, (), theta)[0].gradient
        v = (1 - self.alpha) * v - eta * g + np.sqrt(2 * self.alpha * eta) * rng.standard_normal(theta.shape)
        return {"position": theta + v, "v": v}
