"""Generalised HMC (Horowitz) in PyTorch: one leapfrog step, momenta kept to nine tenths."""

import math
from dataclasses import dataclass

import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass
class Walker:
    position: torch.Tensor
    momentum: torch.Tensor


class Horowitz:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, rng, position, estimator):
        x = torch.tensor(position.tolist(), dtype=torch.float64)
        return Walker(x, torch.from_numpy(rng.standard_normal(tuple(x.shape))))

    def step(self, rng, state, h, estimator):
        def look(q):
            found = estimator.estimate(rng, (), q.numpy())[0]
            return float(found.potential), torch.tensor(found.gradient.tolist(), dtype=torch.float64)

        h, x = float(h), state.position
        p = 0.9 * state.momentum + math.sqrt(1 - 0.9**2) * torch.from_numpy(rng.standard_normal(tuple(x.shape)))
        u, g = look(x)
        half = p - 0.5 * h * g
        y = x + h * half
        v, g = look(y)
        q = half - 0.5 * h * g
        work = v - u + 0.5 * float((q * q).sum() - (p * p).sum())
        if math.log(1 - rng.random()) < -work:
            return Walker(y, q)
        return Walker(x, p)
