"""SGLD as an optimiser of torch, with the multi-tensor kernels of ``torch._foreach_*``.

The loss is the mean of the negative log likelihood over a (mini)batch. Weight decay is the L2 penalty of that loss, so that
it is a Gaussian prior of precision ``num_data * weight_decay`` for all parameters of a group. Each group has a learning rate
of its own, which scales its drift and the variance of its noise alike:

    w <- w - lr (grad + weight_decay w) + N(0, 2 lr T / num_data)
"""

import math

import torch
from torch.optim import Optimizer


def _check(lr, num_data, weight_decay, temperature):
    if lr < 0:
        raise ValueError(f"invalid learning rate: {lr}")
    if num_data < 1:
        raise ValueError(f"invalid number of data: {num_data}")
    if weight_decay < 0:
        raise ValueError(f"invalid weight decay: {weight_decay}")
    if temperature < 0:
        raise ValueError(f"invalid temperature: {temperature}")


def _single_tensor(params, grads, *, lr, weight_decay, std):
    for w, g in zip(params, grads):
        if weight_decay:
            g = g.add(w, alpha=weight_decay)
        w.add_(g, alpha=-lr)
        w.add_(torch.randn_like(w), alpha=std)


def _multi_tensor(params, grads, *, lr, weight_decay, std):
    noise = [torch.randn_like(w) for w in params]
    if weight_decay:
        grads = torch._foreach_add(grads, params, alpha=weight_decay)
    torch._foreach_add_(params, grads, alpha=-lr)
    torch._foreach_add_(params, noise, alpha=std)


class SGLD(Optimizer):
    def __init__(self, params, lr=1e-4, num_data=1000, weight_decay=0.0, temperature=1.0, foreach=True):
        _check(lr, num_data, weight_decay, temperature)
        defaults = dict(
            lr=lr, num_data=num_data, weight_decay=weight_decay, temperature=temperature, foreach=foreach
        )
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        for group in self.param_groups:
            params = [w for w in group["params"] if w.grad is not None]
            if not params:
                continue
            update = _multi_tensor if group["foreach"] else _single_tensor
            update(
                params,
                [w.grad for w in params],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                std=math.sqrt(2.0 * group["lr"] * group["temperature"] / group["num_data"]),
            )
        return loss
