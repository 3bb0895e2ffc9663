"""SGLD with a Gaussian prior N(0, 1 / prior_precision); the loss is the mean over num_data data."""

import math

import torch
from torch.optim import Optimizer


class PriorSGLD(Optimizer):
    def __init__(self, params, lr=1e-5, num_data=1, prior_precision=1.0):
        if prior_precision < 0:
            raise ValueError("a precision is not negative")
        super().__init__(params, dict(lr=lr, num_data=num_data, prior_precision=prior_precision))

    def _decay(self, group):
        """Decoupled shrinkage by the prior, before the gradient step."""
        for p in group["params"]:
            p.mul_(1 - group["lr"] * group["prior_precision"])

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, n = group["lr"], group["num_data"]
            self._decay(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                slope = n * p.grad + group["prior_precision"] * p
                p.add_(slope, alpha=-lr)
                p.add_(torch.randn_like(p), alpha=math.sqrt(2 * lr))
        return loss
