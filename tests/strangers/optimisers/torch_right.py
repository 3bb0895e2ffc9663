"""Optimisers of torch that sample, as they are found in repositories of Bayesian deep learning."""

import math

import torch
from torch.optim import SGD, Optimizer


class MeanLoss(Optimizer):
    """SGLD on a mean loss: half the rate, noise lr / N, L2 in the gradient."""

    def __init__(self, params, lr=1e-3, num_data=50000, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay))

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
                d = p.grad
                if group["weight_decay"] != 0:
                    d = d.add(p, alpha=group["weight_decay"])
                p.add_(d, alpha=-0.5 * group["lr"])
                p.add_(torch.randn_like(p), alpha=math.sqrt(group["lr"] / group["num_data"]))
        return loss


class SummedLoss(Optimizer):
    """SGLD on the negative log posterior, with a temperature."""

    def __init__(self, params, lr=1e-6, temperature=1.0):
        super().__init__(params, {"lr": lr, "temperature": temperature})

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                std = (2 * group["lr"] * group["temperature"]) ** 0.5
                p.data = p.data - group["lr"] * p.grad.data + torch.normal(0.0, std, size=p.shape)


class NoisyGradient(SGD):
    """Noise on the gradient, which torch's own SGD multiplies by the rate: sqrt(2 / lr) before is sqrt(2 lr) after."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.add_(torch.randn_like(p.grad) * math.sqrt(2.0 / group["lr"]))
        return super().step(closure)


class HeavyBall(Optimizer):
    """SGHMC: v' = mu v - lr g + sqrt(2 (1 - mu) lr / N) n, w' = w + v'."""

    def __init__(self, params, lr=1e-3, momentum=0.5, N=100):
        super().__init__(params, dict(lr=lr, momentum=momentum))
        self.N = N

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            mu, lr = group["momentum"], group["lr"]
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["v"] = torch.zeros_like(p)
                v = state["v"]
                v.mul_(mu).sub_(lr * p.grad).add_(torch.randn_like(p), alpha=math.sqrt(2 * (1 - mu) * lr / self.N))
                p.add_(v)


class LogDensity(Optimizer):
    """Ascends a log density that a closure returns, as Welling and Teh write it."""

    def __init__(self, params, epsilon=1e-4):
        super().__init__(params, dict(epsilon=epsilon))

    def step(self, closure):
        logp = closure()
        logp.backward()
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(0.5 * group["epsilon"] * p.grad + torch.randn_like(p).mul_(math.sqrt(group["epsilon"])))
        return logp


class Decoupled(MeanLoss):
    """Weights shrink by lr weight_decay / 2 of themselves, beside the gradient."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["weight_decay"] / 2)
                p.add_(p.grad, alpha=-group["lr"] / 2)
                p.add_(torch.randn_like(p), alpha=math.sqrt(group["lr"] / group["num_data"]))
