"""Optimisers of torch that are SGLD: the loss is the mean over `num_data` observations."""

import math

import torch
from torch.optim import Optimizer


class SGLD(Optimizer):
    """SGLD. Noises are cached by shape within a step, to save kernel launches for networks of many equal layers."""

    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        noises = {}
        for group in self.param_groups:
            sigma = math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad
                if group["weight_decay"] != 0:
                    d_p = d_p.add(p, alpha=group["weight_decay"])
                if p.shape not in noises:
                    noises[p.shape] = torch.randn_like(p)
                p.add_(d_p, alpha=-group["lr"])
                p.add_(noises[p.shape], alpha=sigma)
        return loss


class FanInSGLD(Optimizer):
    """SGLD in which weights and biases are treated as in their initialisation."""

    def __init__(self, params, lr=1e-3, num_data=1000):
        defaults = {"lr": lr, "num_data": num_data}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                std = math.sqrt(2.0 * group["lr"] / group["num_data"])
                if p.dim() > 1:
                    std = std / math.sqrt(p.size(1))
                p.data.add_(p.grad, alpha=-group["lr"]).add_(torch.randn(p.size(), dtype=p.dtype), alpha=std)
        return loss


class BayesSGLD(Optimizer):
    """SGLD for a Bayesian neural network with the prior N(0, prior_std^2) on all weights."""

    def __init__(self, params, lr=1e-4, num_data=1000, prior_std=1.0):
        if prior_std <= 0:
            raise ValueError(f"Invalid prior_std: {prior_std}")
        weight_decay = 1.0 / (prior_std * num_data)
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, wd, n = group["lr"], group["weight_decay"], group["num_data"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                noise = torch.randn_like(p) * (2 * lr / n) ** 0.5
                p.copy_(p - lr * (p.grad + wd * p) + noise)


class MaximizingSGLD(Optimizer):
    """SGLD that takes a loss, or a log likelihood with maximize=True, like the optimisers of torch itself."""

    def __init__(self, params, lr=1e-3, num_data=100, weight_decay=1e-2, maximize: bool = False):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, maximize=maximize))

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
                grad = p.grad.clone()
                if group["weight_decay"]:
                    grad.add_(p, alpha=group["weight_decay"])
                if group["maximize"]:
                    grad.neg_()
                noise = torch.randn_like(p).mul_(math.sqrt(2 * group["lr"] / group["num_data"]))
                p.add_(grad, alpha=-group["lr"]).add_(noise)
        return loss


class CentralizedSGLD(Optimizer):
    """SGLD with gradient centralisation (Yong et al., 2020)."""

    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

    @staticmethod
    def _centralize(g):
        if g.dim() > 1:
            g = g - g.mean(dim=tuple(range(1, g.dim())), keepdim=True)
        return g

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = self._centralize(p.grad)
                if group["weight_decay"] != 0:
                    g = g + group["weight_decay"] * p
                p.add_(g, alpha=-group["lr"])
                p.add_(torch.randn_like(p), alpha=math.sqrt(2 * group["lr"] / group["num_data"]))
        return loss
