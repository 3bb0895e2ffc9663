import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler


def metric(x):
    return 0.5 + 1 / (1 + x**2)


def step(rng, position, h, estimator):
    g = torch.from_numpy(np.array(estimator.estimate(rng, (), position)[0].gradient))
    x = torch.from_numpy(np.array(position)).requires_grad_()
    generator = torch.Generator().manual_seed(int(rng.integers(2**31)))
    D = metric(x)
    (gamma,) = torch.autograd.grad(D.sum(), x)
    with torch.no_grad():
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        new = x - h * (D * g - gamma) + torch.sqrt(2 * h * D) * noise
    return new.numpy()


riemannian = simple_sampler(step, backend="host")
