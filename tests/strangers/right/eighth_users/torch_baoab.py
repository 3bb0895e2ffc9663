"""BAOAB for the underdamped Langevin equation (Leimkuhler and Matthews 2013), unit mass, in torch."""

import math

import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class BAOAB:
    backend = "host"
    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def __init__(self, gamma=1.0):
        assert gamma > 0
        self.gamma = gamma

    def init(self, rng, position, estimator):
        if not isinstance(position, np.ndarray):
            raise TypeError("a single array, please")
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        q = torch.from_numpy(position).clone()
        return {"position": q, "momentum": torch.randn(q.shape, generator=generator, dtype=q.dtype)}

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        def force(q):
            return -torch.as_tensor(np.array(estimator.estimate(rng, (), q.numpy())[0].gradient))

        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        c = math.exp(-self.gamma * h)
        q, p = state["position"].clone(), state["momentum"].clone()

        p.add_(force(q), alpha=0.5 * h)
        q.add_(p, alpha=0.5 * h)
        xi = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        p.mul_(c).add_(xi, alpha=math.sqrt(1 - c * c))
        q.add_(p, alpha=0.5 * h)
        p.add_(force(q), alpha=0.5 * h)
        return {"position": q, "momentum": p}
