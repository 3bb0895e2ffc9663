"""SGHMC (Chen, Fox and Guestrin, 2014) for PyTorch, with bounded draws.

    v <- (1 - friction) v - lr grad L(w) + sqrt(2 friction lr T / N) xi
    w <- w + v

L is the mean loss of a minibatch, N = num_data. The draws of a long run over millions of weights have outliers of five and six
standard deviations, which upset layers of batch normalisation; xi is therefore kept within a few of them.
"""

import math

import torch

BOUND = 2.0


def bounded_normal(like):
    """Standard normal draws without outliers."""
    return torch.randn_like(like).clamp_(-BOUND, BOUND)


class BoundedSGHMC(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, friction=0.1, temperature=1.0):
        if lr <= 0:
            raise ValueError("lr must be positive")
        if not 0 < friction <= 1:
            raise ValueError("friction must lie in (0, 1]")
        if num_data < 1 or temperature <= 0:
            raise ValueError("num_data and temperature must be positive")
        defaults = {"lr": lr, "num_data": num_data, "friction": friction, "temperature": temperature}
        super().__init__(params, defaults)

    @staticmethod
    def _noise_scale(group):
        return math.sqrt(2 * group["friction"] * group["lr"] * group["temperature"] / group["num_data"])

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            scale = self._noise_scale(group)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["velocity"] = torch.zeros_like(p)
                v = state["velocity"]
                v.mul_(1 - group["friction"]).add_(p.grad, alpha=-group["lr"]).add_(bounded_normal(p), alpha=scale)
                p.add_(v)
        return loss
