"""Stochastic-gradient Nose-Hoover thermostat (Ding et al., 2014) as a torch optimiser, one thermostat for each parameter tensor."""

import torch
from torch.optim import Optimizer


class SGNHT(Optimizer):
    """Samples exp(-loss / temperature), where the loss is the full negative log posterior, summed over the data.

        p <- exp(-xi lr) p - lr * (grad + weight_decay * theta) + N(0, 2 A T lr)
        theta <- theta + lr p
        xi <- xi + lr (|p|^2 / n - T) / Q

    for each tensor of n numbers. The stationary law of a thermostat is N(A, T / (n Q)).

    Args:
        params: parameters or parameter groups.
        lr: time step of the dynamics.
        friction: A, strength of the injected noise and first value of the thermostats.
        inertia: Q, a thermostat of larger Q moves more slowly.
        weight_decay: precision of a Gaussian prior, at temperature one.
        temperature: T.
    """

    def __init__(self, params, lr=1e-2, friction=1.0, inertia=1.0, weight_decay=0.0, temperature=1.0):
        if lr <= 0 or friction <= 0 or inertia <= 0:
            raise ValueError("lr, friction and inertia have to be positive")
        if weight_decay < 0 or temperature <= 0:
            raise ValueError("weight_decay cannot be negative, and the temperature has to be positive")
        defaults = {
            "lr": lr,
            "friction": friction,
            "inertia": inertia,
            "weight_decay": weight_decay,
            "temperature": temperature,
        }
        super().__init__(params, defaults)

    def _start(self, p, group):
        """Momenta of the temperature, and the thermostat at its mean."""
        state = self.state[p]
        if not state:
            state["momentum"] = group["temperature"] ** 0.5 * torch.randn_like(p)
            state["xi"] = torch.full((), float(group["friction"]), dtype=p.dtype, device=p.device)
        return state

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            h, temperature = group["lr"], group["temperature"]
            scale = (2 * group["friction"] * temperature * h) ** 0.5
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._start(p, group)
                momentum, xi = state["momentum"], state["xi"]
                force = p.grad + group["weight_decay"] * p
                momentum.mul_(torch.exp(-xi * h)).sub_(h * force).add_(scale * torch.randn_like(p))
                p.add_(momentum, alpha=h)
                xi.add_(h * (momentum.square().mean() - temperature) / group["inertia"])
        return loss
