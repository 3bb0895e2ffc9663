"""Four strangers that are optimisers of torch: --sampler torch:torch_optim.py:CLASS."""

import torch
from torch.optim import Optimizer


# Mean loss: a = lr/2, s^2 = lr T/N: tau = s^2/(2a) = T/N, N tau = T. Decay wd in the gradient: a prior of precision wd N / T.
class MeanLossSGLD(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0, temperature=1.0):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, temperature=temperature))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr = group["lr"]
            sd = (lr * group["temperature"] / group["num_data"]) ** 0.5
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad.add(p, alpha=group["weight_decay"])
                p.add_(d, alpha=-0.5 * lr)
                p.add_(torch.randn_like(p), alpha=sd)
        return loss


# Summed loss: v' = m v - lr g + sqrt(2 lr (1-m) T) n, w' = w + v': in all a = lr/(1-m), s^2 = 2 lr T/(1-m), tau = T; O(lr) for fixed m.
class MomentumSGHMC(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0.9, temperature=1.0):
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum {momentum}")
        super().__init__(params, {"lr": lr, "momentum": momentum, "temperature": temperature})

    @torch.no_grad()
    def step(self, closure=None):
        for g in self.param_groups:
            m, lr = g["momentum"], g["lr"]
            for w in g["params"]:
                if w.grad is None:
                    continue
                s = self.state[w]
                if "v" not in s:
                    s["v"] = torch.zeros_like(w)
                noise = torch.randn_like(w)
                s["v"].mul_(m).add_(w.grad, alpha=-lr).add_(noise, alpha=(2 * lr * (1 - m) * g["temperature"]) ** 0.5)
                w.add_(s["v"])


# Summed loss: Euler for dv = -g - c v dt + sqrt(2c) dW, dw = v dt in the time lr: v' = (1 - c lr) v - lr g + sqrt(2 c lr) n,
# w' = w + lr v'. In all a = lr/c, s^2 = 2 lr/c, tau = 1.
class SecondOrderLangevin(Optimizer):
    def __init__(self, params, lr=0.05, friction=1.0):
        super().__init__(params, dict(lr=lr, friction=friction))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, c = group["lr"], group["friction"]
            for p in group["params"]:
                if p.grad is not None:
                    v = self.state[p]["momentum_buffer"]
                    v.mul_(1 - c * lr)
                    v.add_(p.grad, alpha=-lr)
                    v.add_(torch.randn_like(v), alpha=(2 * c * lr) ** 0.5)
                    p.add_(v, alpha=lr)


# Summed loss: Leimkuhler and Matthews, w' = w - lr g + sqrt(lr/2) (n_old + n_new): a = lr, noise 2 lr over long times, tau = 1;
# on a Gaussian the variance is exact.
class AveragedNoiseLangevin(Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr = group["lr"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["noise"] = torch.randn_like(p)
                fresh = torch.randn_like(p)
                p.add_(p.grad, alpha=-lr).add_(state["noise"] + fresh, alpha=(lr / 2) ** 0.5)
                state["noise"] = fresh
