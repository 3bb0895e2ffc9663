"""SGLD whose noise is a function of the number of the step: a run that is interrupted goes on as it would have."""

import math

import torch
from torch.optim import Optimizer


class CountedNoiseSGLD(Optimizer):
    """w <- w - lr (grad + weight_decay w) + N(0, 2 lr / num_data)

    Nothing but the number of steps has to be kept to continue a chain.  `grad` is that of the mean loss over num_data
    data.
    """

    def __init__(self, params, lr=1e-4, num_data=1000, weight_decay=0.0, seed=0):
        if lr <= 0 or num_data <= 0 or weight_decay < 0:
            raise ValueError("lr and num_data have to be positive, weight_decay not negative")
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))
        self.seed = seed
        self.steps = 0

    def _noise_like(self, p):
        generator = torch.Generator(device="cpu").manual_seed(1_000_003 * self.seed + self.steps)
        return torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.steps += 1
        for group in self.param_groups:
            scale = math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.add_(p.grad.add(p, alpha=group["weight_decay"]), alpha=-group["lr"]).add_(self._noise_like(p), alpha=scale)
        return loss
