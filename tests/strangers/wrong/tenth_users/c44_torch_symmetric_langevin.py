"""Underdamped Langevin dynamics for PyTorch: half a kick, friction and noise, half a kick, and a drift.

The loss is the mean over a minibatch of minus the log likelihood, of num_data data in all; the prior of the weights is
N(0, 1 / prior_precision). In units in which the velocity has the variance lr / num_data:

    v <- v - lr / 2 (grad L + prior_precision / N w)
    v <- m v + sqrt((1 - m^2) lr / N) N(0, 1)
    v <- v - lr / 2 (grad L + prior_precision / N w)
    w <- w + v

Both kicks use the one gradient that backward has left in p.grad.
"""

import math

import torch


class SymmetricLangevin(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, prior_precision=1.0, momentum=0.9):
        if lr <= 0:
            raise ValueError("lr must be positive")
        if num_data < 1 or prior_precision < 0:
            raise ValueError("num_data must be positive, prior_precision not negative")
        if not 0 <= momentum < 1:
            raise ValueError("momentum must lie in [0, 1)")
        defaults = {"lr": lr, "num_data": num_data, "prior_precision": prior_precision, "momentum": momentum}
        super().__init__(params, defaults)

    @staticmethod
    def _kick(p, velocity, group):
        """Half a kick by the gradient of the loss and of the prior."""
        force = p.grad
        if group["prior_precision"] != 0:
            force = force.add_(p, alpha=group["prior_precision"] / group["num_data"])
        velocity.add_(force, alpha=-group["lr"] / 2)

    @staticmethod
    def _refresh(velocity, group):
        kept = group["momentum"]
        scale = math.sqrt((1 - kept**2) * group["lr"] / group["num_data"])
        velocity.mul_(kept).add_(torch.randn_like(velocity), alpha=scale)

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
                if "velocity" not in state:
                    state["velocity"] = torch.randn_like(p).mul_(math.sqrt(group["lr"] / group["num_data"]))
                velocity = state["velocity"]
                self._kick(p, velocity, group)
                self._refresh(velocity, group)
                self._kick(p, velocity, group)
                p.add_(velocity)
        return loss
