"""Cyclical SGLD (Zhang et al., 2020) with the schedule inside of the optimiser.

The step size falls along a cosine from lr to lr * floor within each cycle of steps, and starts anew. Noise goes with the step size of the
moment in all of the cycle, so that every iterate is a sample: large steps travel between modes, small ones have the smaller bias.
"""

import math

import torch
from torch.optim import Optimizer


def cosine(step, cycle_length, floor):
    """Factor of the learning rate at a step: 1 at the start of a cycle, towards `floor` at its end."""
    phase = (step % cycle_length) / cycle_length
    return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * phase))


class CyclicalSGLD(Optimizer):
    """Langevin dynamics for the loss that is a mean over `num_data` data, on a cyclical step size.

        theta <- (1 - lr_t wd) theta - lr_t grad + N(0, 2 lr_t / num_data)

    Decay is decoupled, and is for matrices, kernels and embeddings; biases and gains (tensors with less than two axes) have a flat prior.

    Args:
        params: parameters, or dicts of parameter groups.
        lr: largest learning rate, at the start of a cycle.
        num_data: number of data.
        weight_decay: precision of the prior of weights over the number of data.
        cycle_length: steps in a cycle.
        floor: smallest share of lr.
    """

    def __init__(self, params, lr=1e-2, num_data=1000, weight_decay=1e-3, cycle_length=50, floor=0.1):
        if lr <= 0 or num_data < 1 or weight_decay < 0:
            raise ValueError("invalid lr, num_data or weight_decay")
        if cycle_length < 1 or not 0 < floor <= 1:
            raise ValueError("a cycle has a step at least, and its floor lies in (0, 1]")
        defaults = dict(
            lr=lr, num_data=num_data, weight_decay=weight_decay, cycle_length=cycle_length, floor=floor
        )
        super().__init__(params, defaults)

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
                state = self.state[p]
                state.setdefault("step", 0)
                lr = group["lr"] * cosine(state["step"], group["cycle_length"], group["floor"])
                state["step"] += 1
                if p.dim() >= 2:
                    p.mul_(1.0 - lr * group["weight_decay"])
                p.add_(p.grad, alpha=-lr)
                p.add_(torch.randn_like(p), alpha=math.sqrt(2.0 * lr / group["num_data"]))
        return loss
