"""Stochastic-gradient Nose-Hoover thermostat (Ding et al. 2014) as a torch optimiser, one thermostat for each parameter group.

    p' = p - xi h p - h grad U(w) + sqrt(2 A h) n;    w' = w + h p';    xi' = xi + h (|p'|^2 / d - 1)

Right: dw = p dt, dp = -(xi p + grad U) dt + sqrt(2A) dW, dxi = (|p|^2/d - 1) dt keeps exp(-U - |p|^2/2 - d (xi - A)^2/2); Euler
with the newest values has weak order 1.  The loss is the sum over the data; d counts the numbers of the group.
Object: SGNHT
"""
import torch


class SGNHT(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, diffusion=1.0):
        if lr <= 0 or diffusion <= 0:
            raise ValueError("lr and diffusion are positive")
        super().__init__(params, dict(lr=lr, diffusion=diffusion))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [w for w in group["params"] if w.grad is not None]
            if not weights:
                continue
            h, a = group["lr"], group["diffusion"]
            thermostat = self.state[weights[0]]
            if "xi" not in thermostat:
                thermostat["xi"] = torch.full((), float(a), dtype=weights[0].dtype)
            xi = thermostat["xi"]
            kinetic, count = 0.0, 0
            for w in weights:
                state = self.state[w]
                if "momentum" not in state:
                    state["momentum"] = torch.randn_like(w)
                p = state["momentum"]
                p.copy_(p - xi * h * p - h * w.grad + (2 * a * h) ** 0.5 * torch.randn_like(p))
                w.add_(h * p)
                kinetic = kinetic + (p * p).sum()
                count += p.numel()
            xi.add_(h * (kinetic / count - 1))
        return loss
