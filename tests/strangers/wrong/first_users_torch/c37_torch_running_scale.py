"""Random-walk Metropolis that adapts its scale to the recent size of the parameters."""

import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def init(rng, position, estimator):
    x = torch.tensor(np.array(position), dtype=torch.float64)
    return {"position": x, "size": x.norm() / x.numel() ** 0.5}


def step(rng, state, h, estimator):
    x, size = state["position"], state["size"]
    scale = 0.5 + size
    y = x + (2 * float(h)) ** 0.5 * scale * torch.from_numpy(rng.standard_normal(tuple(x.shape)))
    energy = lambda q: float(estimator.estimate(rng, (), q.numpy())[0].potential)
    if np.log(1 - rng.random()) < energy(x) - energy(y):
        x = y
    return {"position": x, "size": 0.9 * size + 0.1 * x.norm() / x.numel() ** 0.5}


adaptive = simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
