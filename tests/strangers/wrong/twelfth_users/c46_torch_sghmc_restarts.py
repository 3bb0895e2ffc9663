"""SGHMC in the form of SGD with momentum (Chen, Fox and Guestrin 2014, equation 15), with restarts, for torch.

    v <- mu v - lr (g + p w / N) + N(0, 2 (1 - mu) lr / N)
    w <- w + v

g is the gradient of a loss that is the mean over N = `num_data` data, and p the precision of a Gaussian prior. As in
hybrid Monte Carlo the trajectory is cut into pieces: every `restart_every` steps the memory of the velocity is
dropped, which keeps slow directions from swinging.
"""

import math

import torch
from torch.optim import Optimizer


class RestartedSGHMC(Optimizer):
    """SGHMC whose velocity starts anew every `restart_every` steps; 0 for never."""

    def __init__(self, params, lr=1e-2, momentum=0.9, num_data=1000, prior_precision=1.0, restart_every=50):
        if lr <= 0:
            raise ValueError(f"invalid learning rate: {lr}")
        if not 0 <= momentum < 1:
            raise ValueError(f"invalid momentum: {momentum}")
        if num_data < 1:
            raise ValueError(f"invalid number of data: {num_data}")
        if restart_every < 0:
            raise ValueError(f"invalid number of steps between restarts: {restart_every}")
        defaults = dict(
            lr=lr,
            momentum=momentum,
            num_data=num_data,
            prior_precision=prior_precision,
            restart_every=restart_every,
        )
        super().__init__(params, defaults)

    def _velocity(self, p, restart_every):
        """The velocity of a parameter at the start of a step."""
        state = self.state[p]
        if "velocity" not in state:
            state["steps"] = 0
            state["velocity"] = torch.zeros_like(p)
        elif restart_every and state["steps"] % restart_every == 0:
            state["velocity"].zero_()
        state["steps"] += 1
        return state["velocity"]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, mu, num_data = group["lr"], group["momentum"], group["num_data"]
            std = math.sqrt(2 * (1 - mu) * lr / num_data)
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad.add(p, alpha=group["prior_precision"] / num_data)
                v = self._velocity(p, group["restart_every"])
                v.mul_(mu).add_(d_p, alpha=-lr).add_(torch.randn_like(p), alpha=std)
                p.add_(v)
        return loss
