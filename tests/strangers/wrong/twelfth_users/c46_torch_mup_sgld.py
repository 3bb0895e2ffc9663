"""SGLD for wide networks, with learning rates by layer, for torch.

Under the maximal update parametrisation (Yang and Hu 2021) a matrix learns at a rate that falls with its fan-in, so that
one learning rate is good for all widths; biases and gains keep the rate as it is. The optimiser does this for Langevin
dynamics: `base_width` is the width at which lr was tuned.

The loss is the mean over `num_data` data, and the prior of all weights N(0, 1 / prior_precision).
"""

import math

import torch
from torch.optim import Optimizer


def fan_in(p):
    """Number of inputs of a unit: entries of a row of a matrix, channels times window of a convolution."""
    return p[0].numel() if p.dim() > 1 else None


def rate_of_layer(p, base_width):
    """Share of the learning rate at which a parameter moves."""
    width = fan_in(p)
    return 1.0 if width is None else min(1.0, base_width / width)


class WidthScaledSGLD(Optimizer):
    """SGLD whose rate follows the fan-in of each matrix."""

    def __init__(self, params, lr=1e-3, num_data=1000, prior_precision=1.0, base_width=1, temperature=1.0):
        if lr <= 0:
            raise ValueError(f"invalid learning rate: {lr}")
        if num_data < 1:
            raise ValueError(f"invalid number of data: {num_data}")
        if base_width < 1:
            raise ValueError(f"invalid base width: {base_width}")
        if temperature < 0:
            raise ValueError(f"invalid temperature: {temperature}")
        defaults = dict(
            lr=lr,
            num_data=num_data,
            prior_precision=prior_precision,
            base_width=base_width,
            temperature=temperature,
        )
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, num_data = group["lr"], group["num_data"]
            std = math.sqrt(2 * lr * group["temperature"] / num_data)
            for p in group["params"]:
                if p.grad is None:
                    continue
                gradient = p.grad.add(p, alpha=group["prior_precision"] / num_data)
                move = torch.randn_like(p).mul_(std).sub_(gradient, alpha=lr)
                p.add_(move, alpha=rate_of_layer(p, group["base_width"]))
        return loss
