import numpy as np
import torch

from sgmcmc_verification.samplers.simple import simple_sampler


def factor(d):
    L = 0.7 * torch.eye(d, dtype=torch.float64)
    return L + torch.diag(torch.full((d - 1,), 0.3, dtype=torch.float64), -1)


def step(rng, x, h, estimator):
    L = factor(x.size)
    g = torch.as_tensor(np.array(estimator.estimate(rng, (), x)[0].gradient)).flatten()
    xi = torch.as_tensor(np.array(rng.normal(size=x.size)))
    move = -h * (L @ (L.T @ g)) + (2 * h) ** 0.5 * (L @ xi)
    return np.asarray(x) + move.numpy().reshape(x.shape)


cholesky = simple_sampler(step, backend="host")
