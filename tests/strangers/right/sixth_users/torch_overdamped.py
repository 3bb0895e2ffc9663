"""Optimisers that sample, without a velocity of their own (torch)."""

import math

import torch
from torch.optim import Optimizer


def _positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} has to be positive, not {value}")


# w' = w - lr/2 N g + sqrt(lr T) xi with g = grad of the mean loss, U = N L: h = lr/2, noise variance 2 h T.
# Law exp(-U / T) + O(lr). The scratch buffer is filled anew for every parameter, so that no two of them share a draw.
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

    def _buffer(self, like, size):
        key = (like.dtype, like.device)
        buffer = self._scratch.get(key)
        if buffer is None or buffer.numel() < size:
            buffer = self._scratch[key] = torch.empty(size, dtype=like.dtype, device=like.device)
        return buffer

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
            largest = max(p.numel() for p in params)
            lr, std = group["lr"], math.sqrt(group["lr"] * group["temperature"])
            for p in params:
                noise = self._buffer(p, largest)[: p.numel()].normal_(generator=self._generator).view_as(p)
                p.add_(p.grad, alpha=-0.5 * lr * group["num_data"])
                p.add_(noise, alpha=std)
        return loss


# Adaptive drift with weights that sum to one: drift (G + a m) / (1 + a), m = EMA of G with rate 1 - beta, noise 2 lr T.
# m - G(w_k) = - H sqrt(2 lr T) sum_j c_j xi_{k-j} + O(lr), j >= 1: mean zero, made of earlier draws, so that it moves
# the sum of all moves by lr^{3/2} sum xi only, a relative O(lr) of the noise. Law exp(-U / T) + O(lr) for all a, beta.
class AveragedDriftSGLD(Optimizer):
    """Langevin with a drift between the gradient and its moving average ("momentum SGLD" of the adaptive-drift kind)."""

    def __init__(self, params, lr=1e-4, num_data=1000, temperature=1.0, beta=0.9, a=1.0):
        _positive(lr=lr, num_data=num_data, temperature=temperature)
        if not 0.0 <= beta < 1.0:
            raise ValueError("beta has to be in [0, 1)")
        if a < 0.0:
            raise ValueError("a must not be negative")
        super().__init__(params, dict(lr=lr, num_data=num_data, temperature=temperature, beta=beta, a=a))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            a, beta, lr = group["a"], group["beta"], group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                slope = p.grad * group["num_data"]
                state = self.state[p]
                if "exp_avg" not in state:
                    state["exp_avg"] = slope.clone()  # the first gradient: nothing to correct for
                average = state["exp_avg"]
                average.lerp_(slope, 1.0 - beta)
                p.add_(slope, alpha=-lr / (1.0 + a))
                p.add_(average, alpha=-lr * a / (1.0 + a))
                p.add_(torch.randn_like(p), alpha=math.sqrt(2.0 * lr * group["temperature"]))
        return loss


# w' = (1 - lr / (2 s^2)) w - lr/2 N g + sqrt(lr) xi: drift -lr/2 (N g + w / s^2), noise variance lr, for every shape.
# Law exp(-N L) N(w; 0, s^2) + O(lr): the decay is the prior of standard deviation s, once.
class PriorSGLD(Optimizer):
    """SGLD for a mean log likelihood as loss; a Gaussian prior N(0, prior_std^2) comes in by decoupled decay."""

    def __init__(self, params, lr=1e-4, num_data=1000, prior_std=1.0):
        _positive(lr=lr, num_data=num_data, prior_std=prior_std)
        super().__init__(params, dict(lr=lr, num_data=num_data, prior_std=prior_std))

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
                p.mul_(1.0 - 0.5 * lr * precision)
                p.add_(p.grad, alpha=-0.5 * lr * group["num_data"])
                p.add_(torch.randn_like(p), alpha=math.sqrt(lr))
        return loss


# Leimkuhler-Matthews: w' = w - lr N g(w) + sqrt(lr T / 2) (xi_k + xi_{k+1}), xi_k standard normal and kept unscaled.
# Each xi enters twice: in all sqrt(2 lr T) xi. Law exp(-U / T) + O(lr^2) (O(lr) at least, which is what is claimed).
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
            torch._foreach_add_(params, old, alpha=sigma)
            torch._foreach_add_(params, new, alpha=sigma)
            for p, xi in zip(params, new):
                self.state[p]["noise"] = xi
        return loss
