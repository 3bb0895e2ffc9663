import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def start(rng, position, estimator):
    return torch.as_tensor(np.array(position))


@torch.no_grad()
def step(rng, theta, h, estimator):
    torch.manual_seed(int(rng.integers(0, 2**31)))
    grad = torch.as_tensor(np.array(estimator.estimate(rng, (), theta.numpy())[0].gradient))
    # uniform on (-1, 1) has variance 1/3
    noise = torch.empty_like(theta).uniform_(-1.0, 1.0)
    return theta - h * grad + (6 * h) ** 0.5 * noise


uniform = simple_sampler(
    step, init=start, backend="host", claims=Claims(Source("welling2011", "equation 4"), StationaryLaw(order=1))
)
