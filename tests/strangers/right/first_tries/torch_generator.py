import numpy as np
import torch

from sgmcmc_verification.samplers.simple import simple_sampler


def init(rng, position, estimator):
    return {"position": np.array(position), "momentum": np.zeros(np.shape(position))}


def step(rng, state, h, estimator):
    gen = torch.Generator().manual_seed(int(rng.integers(2**62)))
    x, p = torch.tensor(state["position"]), torch.tensor(state["momentum"])
    g = torch.tensor(np.asarray(estimator.estimate(rng, (), state["position"])[0].gradient))
    p = p - h * g - h * p + (2 * h) ** 0.5 * torch.randn(p.shape, generator=gen, dtype=p.dtype)
    x = x + h * p
    return {"position": x.numpy(), "momentum": p.numpy()}


sghmc = simple_sampler(step, init=init, backend="host")
