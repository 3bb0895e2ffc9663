import math

import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler

GAMMA = 1.0


def grad(rng, estimator, x):
    return torch.tensor(np.asarray(estimator.estimate(rng, (), x.numpy())[0].gradient))


def init(rng, position, estimator):
    x = torch.tensor(position)
    p = torch.tensor(rng.standard_normal(x.shape), dtype=x.dtype)
    return x, p, grad(rng, estimator, x)


def step(rng, state, h, estimator):
    x, p, g = state
    p = p - h / 2 * g
    x = x + h / 2 * p
    c = math.exp(-GAMMA * h)
    p = c * p + math.sqrt(1 - c**2) * torch.tensor(rng.standard_normal(x.shape), dtype=x.dtype)
    x = x + h / 2 * p
    g = grad(rng, estimator, x)  # kept for the next step
    p = p - h / 2 * g
    return x, p, g


baoab = simple_sampler(step, init=init, position=lambda state: state[0].numpy(), backend="host")
