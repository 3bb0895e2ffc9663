"""Optimisers that sample, without a velocity of their own (torch)."""

import math

import torch
from torch.optim import Optimizer


def _positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} has to be positive, not {value}")


# WRONG: the buffer is filled once a group, and each parameter reads it from its beginning: all parameters of a group get
# the same noise, xi_b[:n_a] = xi_a. With one parameter right. With two leaves on N(0, I): dx = -x dt + sqrt(2) B dW, B B'
# with ones between equal places, so that cov = B B': places i of two leaves have the correlation 1 in place of 0.
class ScratchSGLD(Optimizer):
    """SGLD which keeps one noise buffer, as long as the largest parameter, instead of allocating one for each."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0, generator=None):
        _positive(lr=lr, num_data=num_data, temperature=temperature)
        super().__init__(params, dict(lr=lr, num_data=num_data, temperature=temperature))
        self._generator = generator
        self._scratch = {}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("_generator", None)
        self.__dict__.setdefault("_scratch", {})

    def _fill(self, like, size):
        key = (like.dtype, like.device)
        buffer = self._scratch.get(key)
        if buffer is None or buffer.numel() < size:
            buffer = self._scratch[key] = torch.empty(size, dtype=like.dtype, device=like.device)
        return buffer.normal_(generator=self._generator)

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
            buffer = self._fill(params[0], max(p.numel() for p in params))
            lr, std = group["lr"], math.sqrt(group["lr"] * group["temperature"])
            for p in params:
                noise = buffer[: p.numel()].view_as(p)
                p.add_(p.grad, alpha=-0.5 * lr * group["num_data"])
                p.add_(noise, alpha=std)
        return loss


# WRONG: SGLD with Adam's direction as an extra drift (Kim, Song and Liang, 2020) at a constant a: as lr -> 0 with fixed
# betas, m -> G and v -> G^2, so that the drift is -(G + a G / (|G| + eps)) with noise 2 lr T. In one dimension the law is
# exp(-(U + a int sign U') / T): N(0, 1) becomes exp(-x^2/2 - a |x|), for a = 2 of variance 0.254 (for a = 1 0.475).
class AdaptiveDriftSGLD(Optimizer):
    """Adam's direction as an adaptive drift beside the gradient, with the noise of SGLD."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0, betas=(0.9, 0.99), a=2.0, eps=1e-8):
        _positive(lr=lr, num_data=num_data, temperature=temperature, eps=eps)
        if a < 0:
            raise ValueError("a must not be negative")
        defaults = dict(lr=lr, num_data=num_data, temperature=temperature, betas=betas, a=a, eps=eps)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                slope = p.grad * group["num_data"]
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                m, v = state["exp_avg"], state["exp_avg_sq"]
                m.mul_(beta1).add_(slope, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(slope, slope, value=1 - beta2)
                m_hat = m / (1 - beta1 ** state["step"])
                v_hat = v / (1 - beta2 ** state["step"])
                drift = slope + group["a"] * m_hat / (v_hat.sqrt() + group["eps"])
                p.add_(drift, alpha=-lr)
                p.add_(torch.randn_like(p), alpha=math.sqrt(2.0 * lr * group["temperature"]))
        return loss


# WRONG: the prior counts twice for matrices, by the gradient (all parameters) and by the decoupled decay of "matrices only".
# Drift -lr/2 (N g + w / s^2 + [w is a matrix] w / s^2), noise variance lr: law exp(-N L) N(w; 0, s^2) for vectors, and
# exp(-N L) N(w; 0, s^2 / 2) for matrices: where the data say nothing the variance is half of what it should be.
class PriorSGLD(Optimizer):
    """SGLD for a mean log likelihood as loss; prior_std is the standard deviation of a Gaussian prior of all weights."""

    def __init__(self, params, lr=1e-4, num_data=1000, prior_std=1.0):
        _positive(lr=lr, num_data=num_data, prior_std=prior_std)
        super().__init__(params, dict(lr=lr, num_data=num_data, prior_std=prior_std))

    def _decay(self, group, p):
        # no decay for biases and gains
        if p.dim() >= 2:
            p.mul_(1.0 - 0.5 * group["lr"] / group["prior_std"] ** 2)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, precision = group["lr"], group["prior_std"] ** -2
            for p in group["params"]:
                if p.grad is None:
                    continue
                slope = (p.grad * group["num_data"]).add(p, alpha=precision)
                self._decay(group, p)
                p.add_(slope, alpha=-0.5 * lr)
                p.add_(torch.randn_like(p), alpha=math.sqrt(lr))
        return loss


# WRONG: the new noise is scaled in place before it is kept, and is scaled a second time when it is the old one: a draw
# moves w by sigma + sigma^2 in all where 2 sigma is due, sigma^2 = lr T / 2. s^2 = lr T / 2 (1 + sigma)^2, a = lr:
# the temperature tends to T / 4 as lr -> 0.
class ForeachAveragedNoise(Optimizer):
    """Langevin with the mean of two successive noises (Leimkuhler and Matthews, 2013), with foreach kernels."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0):
        _positive(lr=lr, num_data=num_data, temperature=temperature)
        super().__init__(params, dict(lr=lr, num_data=num_data, temperature=temperature))

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
            for p in params:
                if len(self.state[p]) == 0:
                    self.state[p]["noise"] = torch.randn_like(p)
            grads = [p.grad for p in params]
            old = [self.state[p]["noise"] for p in params]
            new = [torch.randn_like(p) for p in params]
            sigma = math.sqrt(0.5 * group["lr"] * group["temperature"])
            torch._foreach_add_(params, grads, alpha=-group["lr"] * group["num_data"])
            torch._foreach_mul_(new, sigma)
            torch._foreach_add_(params, old, alpha=sigma)
            torch._foreach_add_(params, new)
            for p, xi in zip(params, new):
                self.state[p]["noise"] = xi
        return loss
