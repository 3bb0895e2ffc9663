"""SGHMC as momentum SGD, equation (15) of Chen et al. 2014: learning rate eta, momentum decay alpha, noise 2 alpha eta."""

import math

import torch


class SGHMCOptimizer:
    backend = "host"

    def __init__(self, alpha: float = 0.1):
        self.alpha = alpha

    def init(self, rng, position, estimator):
        theta = torch.tensor(position)
        return {"position": theta, "momentum_buffer": torch.zeros_like(theta)}

    @torch.no_grad()
    def step(self, rng, state, lr, estimator):
        gen = torch.Generator().manual_seed(int(rng.integers(2**63)))
        theta, buf = state["position"].clone(), state["momentum_buffer"].clone()
        grad = torch.as_tensor(estimator.estimate(rng, (), theta.numpy())[0].gradient)
        noise = torch.randn(theta.shape, generator=gen, dtype=theta.dtype)
        buf.mul_(1 - self.alpha).add_(grad, alpha=-float(lr))
        buf.add_(noise, alpha=math.sqrt(2 * self.alpha * lr))
        theta.add_(buf)
        return {"position": theta, "momentum_buffer": buf}
