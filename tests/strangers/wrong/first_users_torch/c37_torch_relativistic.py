"""Relativistic Langevin in PyTorch: velocities stay below c."""

import numpy as np
import torch

C = 3.0


class Relativistic:
    backend = "host"

    def init(self, rng, position, estimator):
        x = np.array(position, dtype=float)
        return {"position": x, "momentum": rng.standard_normal(x.shape)}

    def step(self, rng, state, h, estimator):
        h = float(h)
        x, p = (torch.from_numpy(np.array(state[k], dtype=float)) for k in ("position", "momentum"))
        g = torch.from_numpy(np.array(estimator.estimate(rng, (), x.numpy())[0].gradient, dtype=float))
        xi = torch.from_numpy(rng.standard_normal(tuple(x.shape)))
        p = p - h * g - h * p + (2 * h) ** 0.5 * xi
        x = x + h * p / torch.sqrt(1 + p**2 / C**2)
        return {"position": x.numpy(), "momentum": p.numpy()}


sampler = Relativistic()
