"""Stochastic-gradient Hamiltonian Monte Carlo (Chen, Fox, Guestrin, 2014) in the parametrisation of SGD with momentum."""

import math

import torch
from torch.optim import Optimizer


class SGHMC(Optimizer):
    r"""SGD with momentum that samples.

        v <- (1 - alpha) v - lr * (grad + weight_decay * theta) + N(0, 2 alpha lr T / N)
        theta <- theta + v

    where `grad` is the gradient of the mean loss, alpha is `mdecay`, N is `num_data` and T the temperature: as the learning rate
    goes to zero at a fixed alpha the positions have the density exp(-N (loss + weight_decay |theta|^2 / 2) / T).

    Args:
        params: parameters, or dicts of parameter groups, each with options of its own.
        lr: learning rate on the scale of the mean loss.
        mdecay: one minus the momentum of SGD.
        num_data: number of data points.
        weight_decay: precision of the Gaussian prior divided by the number of data.
        temperature: of the posterior, with its prior; 1 for Bayes.
    """

    def __init__(self, params, lr=1e-3, mdecay=0.1, num_data=1000, weight_decay=1e-3, temperature=1.0):
        if lr <= 0:
            raise ValueError("lr must be positive")
        if not 0 < mdecay <= 1:
            raise ValueError("mdecay must be in (0, 1]")
        if num_data < 1:
            raise ValueError("num_data must be at least one")
        if weight_decay < 0 or temperature < 0:
            raise ValueError("weight_decay and temperature must not be negative")
        super().__init__(
            params,
            dict(lr=lr, mdecay=mdecay, num_data=num_data, weight_decay=weight_decay, temperature=temperature),
        )

    def _init_group(self, group):
        """Parameters of a group that have a gradient, with their gradients and momenta."""
        params, grads, buffers = [], [], []
        for p in group["params"]:
            if p.grad is None:
                continue
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = torch.zeros_like(p)
            params.append(p)
            grads.append(p.grad)
            buffers.append(state["momentum_buffer"])
        return params, grads, buffers

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, mdecay = group["lr"], group["mdecay"]
            sigma = math.sqrt(2.0 * mdecay * lr * group["temperature"] / group["num_data"])
            for p, grad, buf in zip(*self._init_group(group), strict=True):
                if group["weight_decay"] != 0:
                    grad = grad.add(p, alpha=group["weight_decay"])
                buf.mul_(1.0 - mdecay).add_(grad, alpha=-lr).add_(torch.randn_like(buf), alpha=sigma)
                p.add_(buf)
        return loss
