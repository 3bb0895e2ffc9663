"""Overdamped Langevin optimisers for torch, collected from several projects."""

import math

import torch
from torch.optim import Optimizer


class SGLD(Optimizer):
    """Welling & Teh (2011) for a loss that is the mean of the negative log likelihood, with a Gaussian prior.

    theta <- theta - lr / 2 (N grad + prior_precision theta) + N(0, lr)
    """

    def __init__(self, params, lr=1e-4, num_data=1000, prior_precision=1.0):
        if lr <= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if num_data < 1:
            raise ValueError(f"Invalid num_data: {num_data}")
        super().__init__(params, dict(lr=lr, num_data=num_data, prior_precision=prior_precision))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad.mul(group["num_data"]).add(p, alpha=group["prior_precision"])
                p.add_(d_p, alpha=-0.5 * lr).add_(torch.randn_like(p), alpha=math.sqrt(lr))
        return loss


class ForeachSGLD(Optimizer):
    """Horizontally fused; the loss is the potential itself, the target exp(-loss / temperature)."""

    def __init__(self, params, lr=1e-3, temperature=1.0):
        assert lr > 0 and temperature > 0
        super().__init__(params, {"lr": lr, "temperature": temperature})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            grads = [p.grad for p in params]
            noise = [torch.randn_like(p, memory_format=torch.preserve_format) for p in params]
            torch._foreach_mul_(noise, (2.0 * group["lr"] * group["temperature"]) ** 0.5)
            torch._foreach_add_(params, grads, alpha=-group["lr"])
            torch._foreach_add_(params, noise)
        return loss


class SGLDW(Optimizer):
    """SGLD with decoupled weight decay, as in AdamW. The loss is summed; the decay is a N(0, 1 / weight_decay) prior."""

    def __init__(self, params, lr=1e-3, weight_decay=1e-2):
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {"lr": lr, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                p.data.mul_(1.0 - group["lr"] * group["weight_decay"])
                p.data.add_(grad, alpha=-group["lr"])
                p.data.add_(torch.normal(mean=torch.zeros_like(p.data), std=math.sqrt(2.0 * group["lr"])))
        return loss


class NoisySGD(torch.optim.SGD):
    """torch's own SGD on gradients with noise, heavy ball included.

    With momentum mu a gradient moves lr / (1 - mu) in all; noise of the variance 2 (1 - mu) / lr in the gradient gives
    2 lr / (1 - mu), temperature 1. Summed loss.
    """

    def __init__(self, params, lr=1e-3, momentum=0.9, weight_decay=0.0):
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum: {momentum}")
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                std = math.sqrt(2.0 * (1.0 - group["momentum"]) / group["lr"])
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.add_(torch.empty_like(p).normal_(), alpha=std)
        super().step()
        return loss


class HeunLangevin(Optimizer):
    """Two gradients per step: predictor and trapezoidal corrector with one noise. Needs a closure. Summed loss."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        saved = []
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                xi = torch.randn_like(p) * math.sqrt(2 * lr)
                saved.append((p, lr, p.clone(), p.grad.clone(), xi))
                p.add_(p.grad, alpha=-lr).add_(xi)
        closure()
        for p, lr, start, slope, xi in saved:
            p.copy_(start - 0.5 * lr * (slope + p.grad) + xi)
        return loss
