"""SGLD with heavy-ball momentum and periodic restarts, which keep the momentum from running away early on."""

import numpy as np
import torch

MOMENTUM = 0.9
RESTART_EVERY = 25


class RestartedMomentum:
    backend = "host"

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a single array, please")
        theta = torch.tensor(position)
        return {"position": theta, "buffer": torch.zeros_like(theta), "count": 0}

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        torch.manual_seed(int(rng.integers(2**63)))
        theta, buffer, count = state["position"], state["buffer"], state["count"]
        if count % RESTART_EVERY == 0:
            buffer = torch.zeros_like(theta)
        grad = torch.as_tensor(np.array(estimator.estimate(rng, (), theta.numpy())[0].gradient))
        noise = torch.randn_like(theta)
        buffer = MOMENTUM * buffer - h * grad + (2 * (1 - MOMENTUM) * h) ** 0.5 * noise
        return {"position": theta + buffer, "buffer": buffer, "count": count + 1}
