"""Stochastic gradient Langevin dynamics with heavy-ball momentum, for a loss that is a mean over num_data data."""

import math

import torch


class MomentumSGLD(torch.optim.Optimizer):
    """v <- m v - lr (g + wd w) + sqrt(2 (1 - m) lr / N) xi,  w <- w + v

    The weight decay is the prior N(0, 1 / (N wd)).
    """

    def __init__(self, params, lr=1e-3, num_data=1, momentum=0.9, weight_decay=0.0):
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum {momentum}")
        if num_data <= 0 or lr < 0 or weight_decay < 0:
            raise ValueError("lr, num_data and weight_decay must not be negative")
        super().__init__(params, dict(lr=lr, num_data=num_data, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, mu = group["lr"], group["momentum"]
            std = math.sqrt(2 * (1 - mu) * lr / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad
                if group["weight_decay"] != 0:
                    d = d.add(p, alpha=group["weight_decay"])
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(p)
                v = state["velocity"]
                v.mul_(mu).add_(d, alpha=-lr).add_(torch.randn_like(p), alpha=std)
                p.add_(v)
        return loss
