"""Langevin with the trust ratio of LAMB: the step of a tensor is scaled by |w| / |g|, between 0.1 and 10."""

import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler


def step(rng, w, h, estimator):
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    w = torch.tensor(np.array(w), dtype=torch.float64)
    g = torch.tensor(np.array(estimator.estimate(rng, (), w.numpy())[0].gradient), dtype=torch.float64)
    trust = (w.norm() / g.norm()).clamp(0.1, 10.0)
    lr = float(h) * trust
    return (w - lr * g + (2 * lr).sqrt() * torch.randn(w.shape, generator=generator, dtype=torch.float64)).numpy()


lamb = simple_sampler(step, backend="host")
