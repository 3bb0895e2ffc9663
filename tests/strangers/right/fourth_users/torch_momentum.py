"""Optimisers with a momentum, a thermostat, or another optimiser inside."""

import math

import torch
from torch.optim import SGD, Optimizer


class SGHMC(Optimizer):
    """Chen, Fox and Guestrin in the variables of SGD with momentum; alpha stays as it is when lr goes to 0."""

    def __init__(self, params, lr=1e-5, num_data=1000, alpha=0.1, weight_decay=0.0, temperature=1.0):
        if not 0.0 < alpha <= 1.0:
            raise ValueError("alpha has to be in (0, 1]")
        if temperature <= 0.0:
            raise ValueError("temperature has to be positive")
        defaults = {
            "lr": lr,
            "num_data": num_data,
            "alpha": alpha,
            "weight_decay": weight_decay,
            "temperature": temperature,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, alpha = group["lr"], group["alpha"]
            std = math.sqrt(2.0 * alpha * lr * group["temperature"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["v"] = torch.zeros_like(p)
                state["step"] += 1
                v = state["v"]
                d_p = p.grad * group["num_data"] + p * group["weight_decay"]
                v.mul_(1.0 - alpha).add_(d_p, alpha=-lr).add_(torch.randn_like(p), alpha=std)
                p.add_(v)
        return loss


class NoisySGD(SGD):
    """torch.optim.SGD and then noise for the weights, of the temperature that its momentum makes of it.

    The loss is summed over the data. With momentum m and dampening d a gradient moves the weights by
    lr (1 - d) / (1 - m) in all; the noise is outside of the momentum.
    """

    def __init__(
        self, params, lr=1e-3, momentum=0.5, dampening=0.0, weight_decay=0.0, nesterov=False, temperature=1.0, *,
        maximize=False,
    ):
        if not 0.0 <= momentum < 1.0 or not 0.0 <= dampening < 1.0 or temperature <= 0.0:
            raise ValueError("0 <= momentum < 1, 0 <= dampening < 1 and temperature > 0")
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)
        self.defaults["temperature"] = temperature
        for group in self.param_groups:
            group.setdefault("temperature", temperature)

    @torch.no_grad()
    def step(self, closure=None):
        loss = super().step(closure)
        for group in self.param_groups:
            lr = group["lr"]
            if group["momentum"] > 0:
                lr = lr * (1 - group["dampening"]) / (1 - group["momentum"])
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(torch.randn_like(p), alpha=math.sqrt(2 * lr * group["temperature"]))
        return loss


class Underdamped(Optimizer):
    """Underdamped Langevin of unit mass: a kick, an exact Ornstein-Uhlenbeck step, a drift, each of time lr."""

    def __init__(self, params, lr=1e-3, num_data=1000, friction=1.0, weight_decay=0.0):
        if friction <= 0:
            raise ValueError("friction has to be positive")
        super().__init__(params, dict(lr=lr, num_data=num_data, friction=friction, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            h = group["lr"]
            decay = math.exp(-group["friction"] * h)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.randn_like(p)
                m = state["momentum"]
                m.sub_(h * (group["num_data"] * p.grad + group["weight_decay"] * p))
                m.mul_(decay).add_(math.sqrt(1 - decay**2) * torch.empty_like(p).normal_())
                p.add_(m, alpha=h)
        return loss


class Langevin(Optimizer):
    """A wrapper: the gradient step is the work of an inner optimiser, whose groups are those of this one.

    The loss is the mean over N data.
    """

    def __init__(self, params, lr=1e-5, N=1000, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, N=N, weight_decay=weight_decay))
        self.inner = torch.optim.SGD(self.param_groups, lr=lr, weight_decay=weight_decay)

    def step(self, closure=None):
        self.inner.param_groups = self.param_groups  # a learning rate that is changed here is changed there
        loss = self.inner.step(closure)
        for group in self.param_groups:
            sigma = (2 * group["lr"] / group["N"]) ** 0.5
            for p in group["params"]:
                if p.grad is not None:
                    p.data.add_(torch.normal(0.0, sigma, size=p.shape, dtype=p.dtype, device=p.device))
        return loss


class SGNHT(Optimizer):
    """Ding et al.: a thermostat for each tensor; loss = mean over num_data, lr = time of a step."""

    def __init__(self, params, lr=1e-3, num_data=1000, diffusion=1.0):
        if diffusion <= 0:
            raise ValueError("diffusion has to be positive")
        super().__init__(params, dict(lr=lr, num_data=num_data, diffusion=diffusion))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            h, a = group["lr"], group["diffusion"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.randn_like(p)
                    state["xi"] = torch.full((), float(a), dtype=p.dtype)
                v, xi = state["momentum"], state["xi"]
                v.add_(-h * group["num_data"] * p.grad - h * xi * v + math.sqrt(2 * a * h) * torch.randn_like(v))
                p.add_(v, alpha=h)
                xi.add_(h * (v.pow(2).mean() - 1))
        return loss
