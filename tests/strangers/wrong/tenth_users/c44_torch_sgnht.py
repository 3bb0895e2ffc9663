"""The stochastic gradient Nose-Hoover thermostat (Ding et al., 2014) as an optimiser of PyTorch.

    v <- v - lr grad U(w) - lr xi v + sqrt(2 diffusion lr) N(0, 1)
    w <- w + lr v
    xi <- xi + lr (mean of v^2 - 1)

The loss is the potential U, summed over the data. There is one thermostat xi for all parameters, started at the diffusion; it takes up
the unknown noise of minibatches.
"""

import math

import torch


class SGNHT(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, diffusion=1.0):
        if lr <= 0:
            raise ValueError("lr must be positive")
        if diffusion <= 0:
            raise ValueError("diffusion must be positive")
        super().__init__(params, {"lr": lr, "diffusion": diffusion})

    def _velocity(self, p):
        state = self.state[p]
        if "velocity" not in state:
            state["velocity"] = torch.randn_like(p)
        return state["velocity"]

    def _thermostat(self):
        """The thermostat is kept with the first parameter, so that it is saved and loaded with the optimiser."""
        group = self.param_groups[0]
        first = group["params"][0]
        state = self.state[first]
        if "thermostat" not in state:
            state["thermostat"] = torch.full((), group["diffusion"], dtype=first.dtype, device=first.device)
        return state["thermostat"]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        xi = self._thermostat()
        kinetic = []
        for group in self.param_groups:
            lr, scale = group["lr"], math.sqrt(2 * group["diffusion"] * group["lr"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                v = self._velocity(p)
                v.mul_(1 - lr * xi).add_(p.grad, alpha=-lr).add_(torch.randn_like(p), alpha=scale)
                p.add_(v, alpha=lr)
                kinetic.append(v.square().mean())

        if kinetic:
            xi.add_(torch.stack(kinetic).mean() - 1, alpha=self.param_groups[0]["lr"])
        return loss
