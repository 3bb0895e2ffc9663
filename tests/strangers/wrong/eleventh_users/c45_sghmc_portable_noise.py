"""SGHMC as an optimiser whose chain is the same on every device.

    v <- (1 - friction) v - lr (grad + weight_decay w) + N(0, 2 friction lr temperature / num_data),   w <- w + v

`grad` is that of the mean loss over num_data data.  Generators of CPU and GPU disagree for one seed, so that noise is made
on the CPU, by a generator of its own, and moved; the seed of a step comes from torch's global generator, so that
torch.manual_seed makes a run repeatable.
"""

import math

import torch
from torch.optim import Optimizer


def portable_noise(p, seed):
    """Standard normal numbers in the shape of p, a function of the seed alone."""
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(p.shape, generator=generator, dtype=p.dtype, device="cpu")
    return noise.to(p.device, non_blocking=True)


class PortableSGHMC(Optimizer):
    def __init__(self, params, lr=1e-4, num_data=1000, friction=0.1, temperature=1.0, weight_decay=0.0):
        if lr <= 0:
            raise ValueError(f"invalid learning rate {lr}")
        if not 0 < friction <= 1:
            raise ValueError(f"invalid friction {friction}")
        if num_data <= 0 or temperature < 0 or weight_decay < 0:
            raise ValueError("num_data has to be positive, temperature and weight_decay not negative")
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
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                v = state["momentum"]
                force = p.grad.add(p, alpha=group["weight_decay"])
                v.mul_(1 - friction).add_(force, alpha=-lr).add_(portable_noise(p, seed), alpha=scale)
                p.add_(v)
        return loss
