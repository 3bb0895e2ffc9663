"""Optimisers of torch with a memory: momentum, thermostat, lookahead, Metropolis; losses are means over `num_data`."""

import math

import torch
from torch.optim import Optimizer


class SGHMC(Optimizer):
    """SGD with momentum and the noise of SGHMC; Nesterov's form evaluates the update one step ahead."""

    def __init__(self, params, lr=1e-3, momentum=0.9, num_data=1000, nesterov: bool = False):
        if not 0 < momentum < 1:
            raise ValueError(f"Invalid momentum: {momentum}")
        super().__init__(params, dict(lr=lr, momentum=momentum, num_data=num_data, nesterov=nesterov))

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            lr, mu = group["lr"], group["momentum"]
            std = math.sqrt(2 * lr * (1 - mu) / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                buf = state["momentum_buffer"]
                buf.mul_(mu).add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=std)
                if group["nesterov"]:
                    update = mu * buf - lr * p.grad + std * torch.randn_like(p)
                else:
                    update = buf
                p.add_(update)
        return loss


class DampedSGLD(Optimizer):
    """torch.optim.SGD (momentum, dampening, weight decay) plus Langevin noise."""

    def __init__(self, params, lr=1e-3, momentum=0.9, dampening=0.0, weight_decay=0.0, num_data=1000):
        if not 0 <= dampening < 1:
            raise ValueError(f"Invalid dampening: {dampening}")
        if not 0 <= momentum < 1:
            raise ValueError(f"Invalid momentum: {momentum}")
        super().__init__(
            params,
            dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, num_data=num_data),
        )

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            mu, damp, lr = group["momentum"], group["dampening"], group["lr"]
            temperature = 1.0 / group["num_data"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad
                if group["weight_decay"] != 0:
                    d_p = d_p.add(p, alpha=group["weight_decay"])
                buf = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                buf.mul_(mu).add_(d_p, alpha=1 - damp)
                p.add_(buf, alpha=-lr)
                p.add_(torch.randn_like(p), alpha=math.sqrt(2 * lr * temperature / (1 - mu)))
        return loss


class SGNHT(Optimizer):
    """Stochastic gradient Nose-Hoover thermostat (Ding et al., 2014). lr is the time step."""

    def __init__(self, params, lr=1e-2, diffusion=1.0, num_data=1000):
        super().__init__(params, dict(lr=lr, diffusion=diffusion, num_data=num_data))

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            h, a = group["lr"], group["diffusion"]
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            thermostat = self.state[params[0]].setdefault("xi", torch.tensor(float(a), dtype=params[0].dtype))
            kinetic = 0.0
            for p in params:
                v = self.state[p].setdefault("velocity", torch.randn_like(p))
                v.mul_(1 - h * thermostat)
                v.add_(p.grad, alpha=-h * group["num_data"])
                v.add_(torch.randn_like(p), alpha=math.sqrt(2 * a * h))
                p.add_(v, alpha=h)
                kinetic = kinetic + torch.sum(v * v)
            thermostat.add_(h * (kinetic / len(params) - 1.0))
        return loss


class LookaheadSGLD(Optimizer):
    """SGLD inside of Lookahead (Zhang et al., 2019): k fast steps, then the slow weights follow."""

    def __init__(self, params, lr=1e-3, num_data=1000, k=5, alpha=0.5):
        if not 0 < alpha <= 1 or k < 1:
            raise ValueError("alpha must be in (0, 1] and k positive")
        super().__init__(params, dict(lr=lr, num_data=num_data, k=k, alpha=alpha))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            std = math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["slow"] = p.detach().clone()
                p.add_(p.grad, alpha=-group["lr"]).add_(torch.randn_like(p), alpha=std)
                state["step"] += 1
                if state["step"] % group["k"] == 0:
                    state["slow"].add_(p - state["slow"], alpha=group["alpha"])
                    p.copy_(state["slow"])
        return loss


class MetropolisLangevin(Optimizer):
    """A gradient step with noise, undone if the loss says so; needs a closure that returns the mean loss."""

    def __init__(self, params, lr=1e-3, num_data=1000):
        super().__init__(params, dict(lr=lr, num_data=num_data))

    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        params = [p for group in self.param_groups for p in group["params"]]
        backup = [p.data for p in params]
        before = loss.item()
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.add_(torch.randn_like(p), alpha=math.sqrt(2 * group["lr"] / group["num_data"]))
        with torch.enable_grad():
            after = closure().item()
        n = self.param_groups[0]["num_data"]
        if math.log(torch.rand(1, dtype=torch.float64).item()) >= n * (before - after):
            with torch.no_grad():
                for p, old in zip(params, backup):
                    p.data.copy_(old)
        return loss
