"""Nose-Hoover-Langevin thermostat with weak Langevin noise on the momenta (Samoletov et al. 2007; Leimkuhler and Shang 2016), in torch.

    dq = p dt
    dp = -grad U dt - (xi + gamma) p dt + sqrt(2 gamma) dW
    dxi = (|p|^2 - d) / mu dt - alpha xi dt + sqrt(2 alpha / mu) dW'        xi ~ N(0, 1 / mu)
"""

import math

import torch


class NoseHooverLangevin:
    backend = "host"

    def __init__(self, gamma=0.5, alpha=1.0, thermal_mass=2.0):
        self.gamma = gamma
        self.alpha = alpha
        self.thermal_mass = thermal_mass  # per degree of freedom

    def init(self, rng, position, estimator):
        torch.manual_seed(int(rng.integers(2**62)))
        q = torch.tensor(position)
        return {"position": q, "momentum": torch.randn_like(q), "xi": torch.zeros((), dtype=q.dtype)}

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        gen = torch.Generator().manual_seed(int(rng.integers(2**62)))
        q, p, xi = (state[k].clone() for k in ("position", "momentum", "xi"))
        dof = q.numel()
        mu = self.thermal_mass * dof

        def normal(like):
            return torch.randn(like.shape, generator=gen, dtype=like.dtype)

        def grad():
            return torch.as_tensor(estimator.estimate(rng, (), q.numpy())[0].gradient)

        q += h / 2 * p
        p -= h / 2 * (g := grad())

        xi += h / 2 * (p.square().sum() - dof) / mu
        p *= torch.exp(-h / 2 * xi)
        keep_xi = math.exp(-self.alpha * h)
        xi = keep_xi * xi + math.sqrt((1 - keep_xi**2) / mu) * normal(xi)
        keep_p = math.exp(-self.gamma * h)
        p = keep_p * p + math.sqrt(1 - keep_p**2) * normal(p)
        p *= torch.exp(-h / 2 * xi)
        xi += h / 2 * (p.square().sum() - dof) / mu

        p -= h / 2 * g
        q += h / 2 * p
        return {"position": q, "momentum": p, "xi": xi}
