"""SGLD with a learning rate for each layer that falls with its fan-in, as maximal-update parametrisations have it.

The loss is the mean over the data of a negative log-likelihood; `num_data` is their number. A parameter with fan-in f moves by

    p' = p - (lr / f) (g + weight_decay p) + N(0, 2 lr T / (f N)),

a constant diagonal preconditioner, which leaves the posterior where it is. Vectors (biases, gains) count as fan-in 1.
"""

import math

import torch
from torch.nn.init import _calculate_fan_in_and_fan_out


class LayerwiseSGLD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0, temperature=1.0, layerwise=True):
        if lr <= 0 or num_data < 1:
            raise ValueError("lr and num_data are positive")
        if weight_decay < 0 or temperature < 0:
            raise ValueError("weight_decay and temperature are not negative")
        defaults = {
            "lr": lr,
            "num_data": num_data,
            "weight_decay": weight_decay,
            "temperature": temperature,
            "layerwise": layerwise,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _rate(p, group):
        """The learning rate of one tensor."""
        if not group["layerwise"] or p.dim() < 2:
            return group["lr"]
        fan_in, _ = _calculate_fan_in_and_fan_out(p)
        return group["lr"] / fan_in

    @staticmethod
    def _noise_std(p, group):
        variance = 2 * group["lr"] * group["temperature"] / group["num_data"]
        if group["layerwise"] and p.dim() > 1:
            variance /= p.size(1)
        return math.sqrt(variance)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                drift = p.grad
                if group["weight_decay"]:
                    drift = drift.add(p, alpha=group["weight_decay"])
                p.add_(drift, alpha=-self._rate(p, group))
                p.add_(torch.randn_like(p), alpha=self._noise_std(p, group))
        return loss
