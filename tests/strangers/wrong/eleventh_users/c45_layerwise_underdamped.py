"""Underdamped Langevin dynamics for Bayesian networks, with a Gaussian prior for each group of parameters.

    v <- c (v - lr (num_data grad + prior_precision w)) + sqrt(T (1 - c^2)) N(0, 1),   c = exp(-friction lr),
    w <- w + lr v

`lr` is a time step and `grad` the gradient of the mean loss.  A prior for each layer is a parameter group:

    LayerwiseLangevin([
        {"params": weights, "prior_precision": fan_in},
        {"params": biases, "prior_precision": 1.0},
    ], lr=1e-3, num_data=50_000)
"""

import math
from typing import NamedTuple

import torch


class Coefficients(NamedTuple):
    kept: float
    noise: float
    force: float
    pull: float


class LayerwiseLangevin(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, friction=1.0, prior_precision=1.0, temperature=1.0):
        if lr <= 0 or num_data <= 0 or friction <= 0:
            raise ValueError("lr, num_data and friction have to be positive")
        if prior_precision < 0 or temperature < 0:
            raise ValueError("prior_precision and temperature cannot be negative")
        self._coefficients = {}
        super().__init__(
            params,
            {
                "lr": lr,
                "num_data": num_data,
                "friction": friction,
                "prior_precision": prior_precision,
                "temperature": temperature,
            },
        )

    def coefficients(self, group):
        """Numbers of a step; cyclical schedules come back to the same learning rates, and find them here."""
        lr = float(group["lr"])
        if lr not in self._coefficients:
            kept = math.exp(-group["friction"] * lr)
            self._coefficients[lr] = Coefficients(
                kept=kept,
                noise=math.sqrt(group["temperature"] * (1 - kept**2)),
                force=-kept * lr * group["num_data"],
                pull=-kept * lr * group["prior_precision"],
            )
        return self._coefficients[lr]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            c = self.coefficients(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = math.sqrt(group["temperature"]) * torch.randn_like(p)
                v = state["velocity"]
                v.mul_(c.kept).add_(p.grad, alpha=c.force).add_(p, alpha=c.pull)
                v.add_(torch.randn_like(p), alpha=c.noise)
                p.add_(v, alpha=group["lr"])
        return loss
