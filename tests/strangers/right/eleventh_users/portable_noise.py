"""Optimisers whose chain is the same on every device: noise is made on the CPU by generators of their own, and moved.

Generators of CPU and GPU disagree for one seed.  The seed of a step comes from torch's global generator, so that
torch.manual_seed makes a run repeatable.
"""

import math

import torch
from torch.optim import Optimizer


class PortableSGHMC(Optimizer):
    """v <- (1 - friction) v - lr (grad + weight_decay w) + N(0, 2 friction lr temperature / num_data),   w <- w + v

    `grad` is that of the mean loss over num_data data.  Tensors are numbered, and each has a generator of its own.
    """

    def __init__(self, params, lr=1e-4, num_data=1000, friction=0.1, temperature=1.0, weight_decay=0.0):
        if not 0 < friction <= 1:
            raise ValueError(f"invalid friction {friction}")
        if lr <= 0 or num_data <= 0 or temperature < 0 or weight_decay < 0:
            raise ValueError("lr and num_data have to be positive, temperature and weight_decay not negative")
        super().__init__(
            params,
            dict(lr=lr, num_data=num_data, friction=friction, temperature=temperature, weight_decay=weight_decay),
        )

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        seed = int(torch.randint(2**62, ()))
        for group in self.param_groups:
            lr, friction = group["lr"], group["friction"]
            scale = math.sqrt(2 * friction * lr * group["temperature"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                seed += 1
                noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(seed), dtype=p.dtype)
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                v = state["momentum"]
                force = p.grad.add(p, alpha=group["weight_decay"])
                v.mul_(1 - friction).add_(force, alpha=-lr).add_(noise.to(p.device), alpha=scale)
                p.add_(v)
        return loss


class PortableSGLD(Optimizer):
    """w <- w - lr (grad + weight_decay w) + N(0, 2 lr / num_data), with one generator for all tensors of a step."""

    def __init__(self, params, lr=1e-4, num_data=1000, weight_decay=0.0):
        if lr <= 0 or num_data <= 0 or weight_decay < 0:
            raise ValueError("lr and num_data have to be positive, weight_decay not negative")
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        generator = torch.Generator(device="cpu").manual_seed(int(torch.randint(2**62, ())))
        for group in self.param_groups:
            scale = math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                noise = torch.empty(p.shape, dtype=p.dtype).normal_(generator=generator)
                p.add_(p.grad.add(p, alpha=group["weight_decay"]), alpha=-group["lr"]).add_(noise.to(p.device), alpha=scale)
        return loss
