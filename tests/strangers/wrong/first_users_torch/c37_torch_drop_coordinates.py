"""SGLD that updates a random part of the weights, with the drift scaled up to stay unbiased."""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class DropLangevin:
    drop: float = 0.1

    backend = "host"

    def init(self, rng, position, estimator):
        return np.array(position, dtype=float)

    def step(self, rng, x, h, estimator):
        h = float(h)
        w = torch.from_numpy(np.array(x, dtype=float))
        g = torch.from_numpy(np.array(estimator.estimate(rng, (), x)[0].gradient, dtype=float))
        keep = torch.from_numpy((rng.random(x.shape) >= self.drop).astype(float))
        noise = torch.from_numpy(rng.standard_normal(x.shape))
        return (w - h * keep * g / (1 - self.drop) + (2 * h) ** 0.5 * keep * noise).numpy()
