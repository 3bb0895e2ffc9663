"""SGLD for networks that hardly fit: weights are stored in bfloat16, gradients and noise are computed in float32."""

import torch

from sgmcmc_verification.samplers import simple_sampler


def init(rng, position, estimator):
    return {"weights": torch.as_tensor(position).to(torch.bfloat16)}


def position(state):
    return state["weights"].double()


@torch.no_grad()
def step(rng, state, lr, estimator):
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    weights = state["weights"]
    gradient = estimator.estimate(rng, (), weights.double().numpy())[0].gradient
    update = torch.as_tensor(gradient).float().mul(-float(lr))
    update += (2 * float(lr)) ** 0.5 * torch.randn(update.shape, generator=generator)
    return {"weights": weights + update.to(torch.bfloat16)}


bf16_sgld = simple_sampler(step, init=init, position=position, backend="host")
