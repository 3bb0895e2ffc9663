"""SGLD with a diagonal preconditioner of RMSprop, estimated once at the start and then frozen (no Gamma term needed)."""

import numpy as np
import torch


class FrozenPreconditioner:
    backend = "host"

    def __init__(self, alpha=0.8):
        if not 0 <= alpha < 1:
            raise ValueError("alpha is an averaging weight")
        self.alpha = alpha

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a single array, please")
        square_avg = np.ones_like(position)
        for _ in range(5):
            nearby = position + 0.1 * rng.standard_normal(position.shape)
            g = estimator.estimate(rng, (), nearby)[0].gradient
            square_avg = self.alpha * square_avg + (1 - self.alpha) * np.square(g)
        return {
            "theta": torch.tensor(position),
            "precond": torch.tensor(1.0 / (0.5 + np.sqrt(square_avg))),
        }

    def position(self, state):
        return state["theta"]

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        torch.manual_seed(int(rng.integers(2**63)))
        theta, G = state["theta"], state["precond"]
        grad = torch.as_tensor(np.array(estimator.estimate(rng, (), theta.numpy())[0].gradient))
        noise = torch.randn_like(theta) * torch.sqrt(2 * h * G)
        return {"theta": theta - h * G * grad + noise, "precond": G}
