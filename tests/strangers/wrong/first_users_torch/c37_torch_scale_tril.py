"""SGLD preconditioned by a fixed matrix that couples neighbours, in PyTorch."""

import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler


def matrix(d):
    beside = torch.diag(torch.full((d - 1,), 0.25, dtype=torch.float64), 1)
    return torch.eye(d, dtype=torch.float64) + beside + beside.T


def step(rng, x, h, estimator):
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    w = torch.tensor(np.array(x), dtype=torch.float64)
    g = torch.tensor(np.array(estimator.estimate(rng, (), x)[0].gradient), dtype=torch.float64).reshape(-1)
    a = matrix(g.numel())
    noise = a @ torch.randn(g.numel(), generator=generator, dtype=torch.float64)
    return (w - (float(h) * (a @ g) - (2 * float(h)) ** 0.5 * noise).reshape(w.shape)).numpy()


preconditioned = simple_sampler(step, backend="host")
