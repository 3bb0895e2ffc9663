import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler


def step(rng, position, h, estimator):
    x = torch.tensor(position)
    g = torch.tensor(np.asarray(estimator.estimate(rng, (), position)[0].gradient))
    noise = torch.tensor(rng.standard_normal(position.shape), dtype=x.dtype)
    x = x - h * g / (1 + h * g.abs()) + (2 * h) ** 0.5 * noise
    return x.numpy()


tamed = simple_sampler(step, backend="host")
