"""SGHMC for a summed loss (a negative log posterior); lr is the time step of the second-order equation."""

import torch
from torch.optim import Optimizer


class SGHMC(Optimizer):
    """v += -lr g - lr c v + sqrt(2 c T lr) xi;  w += lr v.  All in place, the noise in a buffer of its own."""

    def __init__(self, params, lr=1e-2, friction=2.0, temperature=1.0):
        if lr <= 0 or friction <= 0 or temperature < 0:
            raise ValueError("lr and friction must be positive, the temperature not negative")
        super().__init__(params, {"lr": lr, "friction": friction, "temperature": temperature})

    def _buffers(self, p):
        state = self.state[p]
        if not state:
            state["momentum"] = torch.zeros_like(p, memory_format=torch.preserve_format)
            state["noise"] = torch.empty_like(p, memory_format=torch.preserve_format)
        return state["momentum"], state["noise"]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            h, c, t = group["lr"], group["friction"], group["temperature"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                momentum, noise = self._buffers(p)
                noise.normal_(0.0, (2 * c * t * h) ** 0.5)
                momentum.mul_(1 - c * h)
                momentum.sub_(p.grad, alpha=h)
                momentum.add_(noise)
                p.add_(momentum, alpha=h)
        return loss
