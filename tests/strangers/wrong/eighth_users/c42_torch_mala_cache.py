"""MALA in torch that evaluates one gradient per step: energy and gradient of the last point are kept."""

import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class MALA:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def evaluate(self, rng, theta, estimator):
        e = estimator.estimate(rng, (), theta.numpy())[0]
        return torch.as_tensor(float(e.potential), dtype=theta.dtype), torch.as_tensor(np.array(e.gradient))

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a single array, please")
        theta = torch.tensor(position)
        energy, grad = self.evaluate(rng, theta, estimator)
        return {"position": theta, "energy": energy, "grad": grad}

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        gen = torch.Generator().manual_seed(int(rng.integers(2**63)))
        x, u_x, g_x = state["position"], state["energy"], state["grad"]
        y = x - h * g_x + (2 * h) ** 0.5 * torch.randn(x.shape, generator=gen, dtype=x.dtype)
        u_y, g_y = self.evaluate(rng, y, estimator)

        forward = ((y - x + h * g_x) ** 2).sum() / (4 * h)
        backward = ((x - y + h * g_y) ** 2).sum() / (4 * h)
        accept = torch.rand((), generator=gen, dtype=x.dtype).log() < u_x - u_y + forward - backward
        return {
            "position": torch.where(accept, y, x),
            "energy": torch.where(accept, u_y, u_x),
            "grad": g_y,
        }
