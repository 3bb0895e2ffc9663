import math

import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class GHMC:
    """Horowitz' generalised HMC: partial refreshment, one leapfrog step, flip of the momentum on rejection."""

    backend = "host"
    claims = Claims(Source("", "Horowitz 1991"), ExactLaw())

    def __init__(self, friction=1.0):
        self.friction = friction

    def init(self, rng, position, estimator):
        return {"position": position, "momentum": rng.standard_normal(position.shape)}

    def step(self, rng, state, h, estimator):
        torch.manual_seed(int(rng.integers(2**31)))

        def evaluate(q):
            found = estimator.estimate(rng, (), q.numpy())[0]
            return float(found.potential), torch.tensor(np.asarray(found.gradient))

        q = torch.tensor(state["position"])
        p = torch.tensor(state["momentum"])
        c = math.exp(-self.friction * h)
        p = c * p + math.sqrt(1 - c**2) * torch.randn_like(p)
        u, g = evaluate(q)
        p1 = p - h / 2 * g
        q1 = q + h * p1
        u1, g1 = evaluate(q1)
        p1 = p1 - h / 2 * g1
        log_ratio = u - u1 + 0.5 * (p**2).sum() - 0.5 * (p1**2).sum()
        if torch.rand(1, dtype=q.dtype).log() < log_ratio:
            q, p = q1, p1
        else:
            p = -p
        return {"position": q.numpy(), "momentum": p.numpy()}
