"""Optimisers of torch that are called samplers, each with one of the mistakes that trackers are full of."""

import math

import torch
from torch.optim import Optimizer


class _Loop(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=50000, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                self.move(p, group, group["lr"], group["num_data"])


class NoRoot(_Loop):
    """Noise of standard deviation lr."""

    def move(self, p, group, lr, n):
        p.add_(p.grad + torch.randn_like(p), alpha=-lr)


class NoTwo(Optimizer):
    """Drift lr with noise sqrt(lr): one of them is for half the rate."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"]).add_(torch.randn_like(p), alpha=group["lr"] ** 0.5)


class NoData(_Loop):
    """A mean loss with the noise of a summed one, divided by N where its root is due."""

    def move(self, p, group, lr, n):
        p.add_(p.grad, alpha=-lr / 2).add_(torch.randn_like(p), alpha=math.sqrt(lr) / n)


class Reused(_Loop):
    """Noise that is drawn once."""

    def move(self, p, group, lr, n):
        state = self.state[p]
        if "noise" not in state:
            state["noise"] = torch.randn_like(p)
        p.add_(p.grad, alpha=-lr / 2).add_(state["noise"], alpha=math.sqrt(lr / n))


class Reseeded(_Loop):
    """A generator that is seeded in every step, for reproducibility."""

    def move(self, p, group, lr, n):
        torch.manual_seed(0)
        p.add_(p.grad, alpha=-lr / 2).add_(torch.randn_like(p), alpha=math.sqrt(lr / n))


class Shrinks(_Loop):
    """Weight decay that the learning rate does not multiply."""

    def move(self, p, group, lr, n):
        p.mul_(1 - group["weight_decay"])
        p.add_(p.grad, alpha=-lr / 2).add_(torch.randn_like(p), alpha=math.sqrt(lr / n))
