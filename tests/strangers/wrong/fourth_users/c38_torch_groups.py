"""Langevin optimisers for torch. The loss is the mean over num_data; the law is exp(-num_data * loss / temperature)."""

import math

import torch
from torch.optim import Optimizer


def evaluated(closure):
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


class GroupedSGLD(Optimizer):
    """SGLD with a learning rate for each group of parameters."""

    def __init__(self, params, lr=1e-3, num_data=1000, temperature=1.0):
        super().__init__(params, {"lr": lr, "num_data": num_data, "temperature": temperature})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        first = self.param_groups[0]
        scale = math.sqrt(2 * first["lr"] * first["temperature"] / first["num_data"])
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.add_(p.grad, alpha=-group["lr"])
                p.add_(torch.randn_like(p), alpha=scale)
        return loss


class DecoupledDecaySGLD(Optimizer):
    """SGLD with weight decay apart from the gradient, a Gaussian prior of its own for each group."""

    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=1e-2):
        super().__init__(params, {"lr": lr, "num_data": num_data, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        weight_decay = self.defaults["weight_decay"]
        for group in self.param_groups:
            lr = group["lr"]
            scale = math.sqrt(2 * lr / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.mul_(1 - lr * weight_decay)
                p.add_(p.grad, alpha=-lr)
                p.add_(torch.randn_like(p), alpha=scale)
        return loss


class CycledSGHMC(Optimizer):
    """SGHMC as momentum SGD with noise; works with schedulers of learning rate and momentum."""

    def __init__(self, params, lr=1e-3, momentum=0.9, num_data=1000, temperature=1.0):
        if not 0 <= momentum < 1:
            raise ValueError("momentum has to be in [0, 1)")
        super().__init__(params, {"lr": lr, "momentum": momentum, "num_data": num_data, "temperature": temperature})
        self.friction = 1 - momentum

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        for group in self.param_groups:
            lr, mu = group["lr"], group["momentum"]
            scale = math.sqrt(2 * self.friction * lr * group["temperature"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(p)
                velocity = state["velocity"]
                velocity.mul_(mu).add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=scale)
                p.add_(velocity)
        return loss


class ThermostatSGD(Optimizer):
    """SGNHT (Ding et al. 2014) with one thermostat for each group, in the form u = sqrt(eta) p."""

    def __init__(self, params, lr=1e-3, friction=0.1, num_data=1000):
        super().__init__(params, {"lr": lr, "friction": friction, "num_data": num_data})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        kinetic = 0.0
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            eta = group["lr"] / group["num_data"]
            shared = self.state[params[0]]
            if "xi" not in shared:
                shared["xi"] = torch.tensor(float(group["friction"]), dtype=params[0].dtype)
            xi, numbers = shared["xi"], 0
            for p in params:
                state = self.state[p]
                if "u" not in state:
                    state["u"] = torch.randn_like(p) * math.sqrt(eta)
                u = state["u"]
                u.mul_(1 - xi).add_(p.grad, alpha=-group["lr"])
                u.add_(torch.randn_like(p), alpha=math.sqrt(2 * group["friction"] * eta))
                p.add_(u)
                kinetic = kinetic + u.pow(2).sum()
                numbers += u.numel()
            xi.add_(kinetic / numbers - eta)
        return loss


class ClosureSGLD(Optimizer):
    """SGLD that takes a closure of loss and backward pass, and clears the gradients itself."""

    def __init__(self, params, lr=1e-3, num_data=1000):
        super().__init__(params, {"lr": lr, "num_data": num_data})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            self.zero_grad()
        for group in self.param_groups:
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            scale = math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.add_(p.grad, alpha=-group["lr"]).add_(torch.randn_like(p), alpha=scale)
        return loss
