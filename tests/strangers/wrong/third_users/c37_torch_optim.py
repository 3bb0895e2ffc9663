"""Optimisers of torch that sample. Run as torch:torch_optim.py:NAME; the loss is the mean over `num_data` data."""

import torch
from torch.optim import Optimizer


class PriorSGLD(Optimizer):
    """SGLD for a mean loss, with a normal prior of precision `prior_precision` on all parameters."""

    def __init__(self, params, lr=1e-4, num_data=1000, prior_precision=1.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, prior_precision=prior_precision))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, n, precision = group["lr"], group["num_data"], group["prior_precision"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                decay = precision / n
                d_p = p.grad.add(p, alpha=decay)
                p.mul_(1 - lr * decay)
                p.add_(d_p, alpha=-lr)
                p.add_(torch.randn_like(p), alpha=(2 * lr / n) ** 0.5)
        return loss


class BufferedSGLD(Optimizer):
    """SGLD that draws once a step, into one buffer that is as long as the largest parameter."""

    def __init__(self, params, lr=1e-4, num_data=1000):
        super().__init__(params, dict(lr=lr, num_data=num_data))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            active = [p for p in group["params"] if p.grad is not None]
            if not active:
                continue
            longest = max(p.numel() for p in active)
            buffer = torch.randn(longest, dtype=active[0].dtype, device=active[0].device)
            for p in active:
                noise = buffer[: p.numel()].view_as(p)
                p.add_(p.grad, alpha=-group["lr"]).add_(noise, alpha=(2 * group["lr"] / group["num_data"]) ** 0.5)
        return loss


class RMSpropSGLD(Optimizer):
    """Preconditioned SGLD (Li et al. 2016), Gamma neglected as in the paper's experiments."""

    def __init__(self, params, lr=1e-4, num_data=1000, alpha=0.9, eps=1e-3):
        super().__init__(params, dict(lr=lr, num_data=num_data, alpha=alpha, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["square_avg"] = torch.zeros_like(p)
                v = state["square_avg"].mul_(group["alpha"]).addcmul_(p.grad, p.grad, value=1 - group["alpha"])
                metric = 1 / (v.sqrt() + group["eps"])
                p.sub_(group["lr"] * metric * p.grad)
                p.add_((2 * group["lr"] * metric / group["num_data"]).sqrt() * torch.randn_like(p))
        return loss


class NesterovSGHMC(Optimizer):
    """SGHMC with Nesterov's look-ahead."""

    def __init__(self, params, lr=1e-4, momentum=0.9, num_data=1000, nesterov=True):
        super().__init__(params, dict(lr=lr, momentum=momentum, num_data=num_data, nesterov=nesterov))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            lr, mu = group["lr"], group["momentum"]
            sigma = (2 * (1 - mu) * lr / group["num_data"]) ** 0.5
            # with x' = x + v' and v' = mu v - lr' g + sigma n, lr' = (1 - mu) lr
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "v" not in state:
                    state["v"] = torch.zeros_like(p)
                push = -(1 - mu) * lr * p.grad
                v = state["v"].mul_(mu).add_(push).add_(torch.randn_like(p), alpha=sigma * (1 - mu) ** 0.5)
                p.add_(push + mu * v if group["nesterov"] else v)
        return loss


class ScheduledSGLD(Optimizer):
    """SGLD made for learning-rate schedulers; the noise level is worked out once."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, temperature=temperature))
        self._noise_std = (2 * self.defaults["lr"] * temperature / num_data) ** 0.5

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["lr"])
                    p.add_(torch.randn_like(p), alpha=self._noise_std)
        return loss


class AntitheticSGLD(Optimizer):
    """SGLD; in every second step a part of the noise is the antithetic twin of that of the step before."""

    def __init__(self, params, lr=1e-4, num_data=1000, twin=0.2):
        if not 0 <= twin < 1:
            raise ValueError("twin in [0, 1)")
        super().__init__(params, dict(lr=lr, num_data=num_data, twin=twin))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            share = group["twin"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state.setdefault("step", 0)
                fresh = torch.randn_like(p)
                if state["step"] % 2 == 0:
                    state["twin"] = torch.randn_like(p)
                else:
                    state["twin"] = -state["twin"]
                noise = (1 - share) ** 0.5 * fresh + share**0.5 * state["twin"]
                state["step"] += 1
                p.add_(p.grad, alpha=-group["lr"]).add_(noise, alpha=(2 * group["lr"] / group["num_data"]) ** 0.5)
        return loss
