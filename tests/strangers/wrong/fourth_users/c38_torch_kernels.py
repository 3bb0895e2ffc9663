"""Langevin optimisers for torch with large tensors, preconditioners and foreach kernels. Losses are means over num_data."""

import math

import torch
from torch.optim import Optimizer

BLOCK = 4096


def evaluated(closure):
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


class BlockNoiseSGLD(Optimizer):
    """SGLD; the noise of a large tensor is made from blocks, so that the buffer stays in cache."""

    def __init__(self, params, lr=1e-3, num_data=1000):
        super().__init__(params, {"lr": lr, "num_data": num_data})

    @staticmethod
    def noise_like(p):
        count = p.numel()
        block = torch.randn(min(count, BLOCK), dtype=p.dtype, device=p.device)
        return block.repeat(-(-count // BLOCK))[:count].view_as(p) if count else torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        for group in self.param_groups:
            scale = math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.add_(p.grad, alpha=-group["lr"])
                p.add_(self.noise_like(p), alpha=scale)
        return loss


class ForeachSGLD(Optimizer):
    """SGLD with torch._foreach kernels."""

    def __init__(self, params, lr=1e-3, num_data=1000, temperature=1.0):
        super().__init__(params, {"lr": lr, "num_data": num_data, "temperature": temperature})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        for group in self.param_groups:
            params = group["params"]
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
            noises = [torch.randn_like(p) for p in params]
            torch._foreach_mul_(noises, math.sqrt(2 * group["lr"] * group["temperature"] / group["num_data"]))
            torch._foreach_add_(params, grads, alpha=-group["lr"])
            torch._foreach_add_(params, noises)
        return loss


class FilterScaledSGLD(Optimizer):
    """SGLD whose step for a weight matrix or a kernel is scaled by the norm of each filter, as in LARS; biases are not."""

    def __init__(self, params, lr=1e-3, num_data=1000, eps=1e-3):
        super().__init__(params, {"lr": lr, "num_data": num_data, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.ndim > 1:
                    rows = p.flatten(1)
                    size = rows.norm(dim=1) / math.sqrt(rows.shape[1]) + group["eps"]
                    rate = group["lr"] * size.view(-1, *[1] * (p.ndim - 1))
                else:
                    rate = torch.as_tensor(group["lr"], dtype=p.dtype)
                p.add_(-rate * p.grad + (2 * rate / group["num_data"]).sqrt() * torch.randn_like(p))
        return loss


class BurnInSGLD(Optimizer):
    """SGLD with a diagonal preconditioner that is estimated in a burn-in (Springenberg et al. 2016) and then kept."""

    def __init__(self, params, lr=1e-3, num_data=1000, burn_in=3000, beta=0.99, eps=1e-4):
        super().__init__(params, {"lr": lr, "num_data": num_data, "burn_in": burn_in, "beta": beta, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"], state["square"] = 0, torch.ones_like(p)
                state["step"] += 1
                if state["step"] > group["burn_in"]:
                    state["square"].mul_(group["beta"]).addcmul_(p.grad, p.grad, value=1 - group["beta"])
                rate = group["lr"] / (state["square"].sqrt() + group["eps"])
                p.add_(-rate * p.grad + (2 * rate / group["num_data"]).sqrt() * torch.randn_like(p))
        return loss


class WhitenedSGLD(Optimizer):
    """SGLD; a matrix is preconditioned from the left by the inverse second moment of its first gradient, then kept."""

    def __init__(self, params, lr=1e-3, num_data=1000, damping=1.0):
        super().__init__(params, {"lr": lr, "num_data": num_data, "damping": damping})

    @torch.no_grad()
    def step(self, closure=None):
        loss = evaluated(closure)
        for group in self.param_groups:
            lr, scale = group["lr"], math.sqrt(2 * group["lr"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                noise = torch.randn_like(p)
                if p.ndim != 2:
                    p.add_(p.grad, alpha=-lr).add_(noise, alpha=scale)
                    continue
                state = self.state[p]
                if not state:
                    one = torch.eye(p.shape[0], dtype=p.dtype, device=p.device)
                    moment = p.grad @ p.grad.T / (p.grad.pow(2).mean() * p.shape[1] + 1e-12)
                    state["inverse"] = torch.linalg.inv(moment + group["damping"] * one)
                    state["root"] = torch.linalg.cholesky(state["inverse"], upper=True)
                p.add_(state["inverse"] @ p.grad, alpha=-lr).add_(state["root"] @ noise, alpha=scale)
        return loss
