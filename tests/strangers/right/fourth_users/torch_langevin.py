"""Overdamped Langevin optimisers, as they stand in repositories of Bayesian deep learning."""

import math

import torch
from torch.distributions import Normal
from torch.optim import Optimizer


class SGLD(Optimizer):
    """Welling and Teh, loss = mean negative log likelihood; all options may differ between groups."""

    def __init__(self, params, lr=1e-4, num_data=1000, weight_decay=0.0, temperature=1.0):
        if lr <= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if num_data < 1:
            raise ValueError(f"Invalid number of data: {num_data}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight decay: {weight_decay}")
        if temperature <= 0.0:
            raise ValueError(f"Invalid temperature: {temperature}")
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, temperature=temperature))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, std = group["lr"], math.sqrt(group["lr"] * group["temperature"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                # weight_decay is the precision of the prior of the weights
                slope = group["num_data"] * p.grad + group["weight_decay"] * p
                p.copy_(torch.normal(p - 0.5 * lr * slope, std))
        return loss


class ForeachSGLD(Optimizer):
    """Multi-tensor version, weight decay decoupled as in AdamW; loss = mean over num_data."""

    def __init__(self, params, lr=1e-5, num_data=1000, weight_decay=0.0, temperature=1.0):
        if lr <= 0 or num_data < 1 or weight_decay < 0 or temperature <= 0:
            raise ValueError("bad option")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        self.effective_size = num_data / temperature  # does not depend on lr: schedulers are welcome

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
            noise = [torch.randn_like(p) for p in params]
            torch._foreach_mul_(noise, (2 * group["lr"] / self.effective_size) ** 0.5)
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, grads, alpha=-group["lr"])
            torch._foreach_add_(params, noise)
        return loss


class GeneratorSGLD(Optimizer):
    """With a generator of its own, seeded once, and nbeta = N x inverse temperature of a mean loss."""

    def __init__(self, params, lr=1e-4, nbeta=1000.0, weight_decay=0.0, seed=0):
        defaults = dict(lr=lr, nbeta=nbeta, weight_decay=weight_decay)
        super().__init__(params, defaults)
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    dw = p.grad.mul(group["nbeta"])
                    if group["weight_decay"]:
                        dw.add_(p, alpha=group["weight_decay"])
                    p.add_(dw, alpha=-group["lr"] / 2)
                    noise = torch.randn(p.shape, generator=self.generator, dtype=p.dtype, device=p.device)
                    p.add_(noise, alpha=group["lr"] ** 0.5)
        return loss


class ScaledSGLD(Optimizer):
    """A fixed diagonal preconditioner, made on the first step: rows of a tensor move at different speeds.

    The loss is the summed negative log posterior but for the decay.
    """

    def __init__(self, params, lr=1e-3, weight_decay=0.0, temperature=1.0):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, temperature=temperature))

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
                if "scale" not in state:
                    state["scale"] = torch.linspace(0.5, 1.5, p.numel(), dtype=p.dtype).reshape(p.shape)
                step_size = group["lr"] * state["scale"]
                grad = p.grad.add(p, alpha=group["weight_decay"])
                noise = Normal(torch.zeros_like(p), torch.sqrt(2 * group["temperature"] * step_size)).sample()
                p.addcmul_(step_size, grad, value=-1.0).add_(noise)
        return loss


class InPlaceSGLD(Optimizer):
    """One buffer for the noise of each tensor, filled anew in each step; may ascend a mean log likelihood."""

    def __init__(self, params, lr=1e-5, num_data=1000, weight_decay=0.0, *, maximize=False):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, maximize=maximize))

    @property
    def noise_scale(self):
        """Standard deviation of the noise of each group."""
        return [math.sqrt(2.0 * group["lr"] / group["num_data"]) for group in self.param_groups]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group, scale in zip(self.param_groups, self.noise_scale):
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = -p.grad if group["maximize"] else p.grad
                if group["weight_decay"] != 0:
                    grad = grad.add(p, alpha=group["weight_decay"])
                buffer = self.state[p].setdefault("buffer", torch.empty_like(p))
                buffer.normal_().mul_(scale)
                p.add_(grad, alpha=-group["lr"]).add_(buffer)
        return loss
