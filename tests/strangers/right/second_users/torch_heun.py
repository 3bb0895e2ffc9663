"""Stochastic Heun scheme for the Langevin SDE with two-point noise, in torch."""

import torch

from sgmcmc_verification.samplers import simple_sampler


def gradient(estimator, rng, x):
    return torch.from_numpy(estimator.estimate(rng, (), x.numpy())[0].gradient)


def rademacher(x):
    return 2 * torch.randint(0, 2, x.shape).to(x.dtype) - 1


@torch.no_grad()
def heun(rng, x, h, estimator):
    torch.manual_seed(int(rng.integers(2**63)))
    dw = (2 * h) ** 0.5 * rademacher(x)
    k1 = -gradient(estimator, rng, x)
    k2 = -gradient(estimator, rng, x + h * k1 + dw)
    return x + 0.5 * h * (k1 + k2) + dw


heun_two_point = simple_sampler(heun, init=lambda rng, position, estimator: torch.tensor(position), backend="host")
