"""ABOBA: underdamped Langevin dynamics by a symmetric splitting, as an optimiser of torch that takes a closure.

The parameters drift for half a step, the closure is called there, the momentum gets both of its half kicks from that one
gradient, with an exact Ornstein-Uhlenbeck step between them, and the parameters drift for the other half:

    A(lr / 2)  B(lr / 2)  O(lr)  B(lr / 2)  A(lr / 2)

``lr`` is the time step. The closure returns the negative log posterior (a sum over the data, with its prior), as it would for
``torch.optim.LBFGS``:

    def closure():
        optimizer.zero_grad()
        loss = negative_log_posterior()
        loss.backward()
        return loss
"""

import math

import torch


class ABOBA(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, friction=1.0, mass=1.0, temperature=1.0):
        if lr <= 0:
            raise ValueError("lr must be positive")
        if friction <= 0 or mass <= 0 or temperature <= 0:
            raise ValueError("friction, mass and temperature must be positive")
        super().__init__(params, dict(lr=lr, friction=friction, mass=mass, temperature=temperature))

    def _momentum(self, w, group):
        state = self.state[w]
        if "momentum" not in state:
            state["momentum"] = math.sqrt(group["mass"] * group["temperature"]) * torch.randn_like(w)
        return state["momentum"]

    def _drift(self):
        for group in self.param_groups:
            for w in group["params"]:
                w.add_(self._momentum(w, group), alpha=0.5 * group["lr"] / group["mass"])

    def _kick(self):
        for group in self.param_groups:
            for w in group["params"]:
                if w.grad is not None:
                    self._momentum(w, group).add_(w.grad, alpha=-0.5 * group["lr"])

    def _refresh(self):
        for group in self.param_groups:
            kept = math.exp(-group["friction"] * group["lr"])
            std = math.sqrt((1.0 - kept * kept) * group["mass"] * group["temperature"])
            for w in group["params"]:
                momentum = self._momentum(w, group)
                momentum.mul_(kept).add_(torch.randn_like(w), alpha=std)

    @torch.no_grad()
    def step(self, closure):
        self._drift()
        with torch.enable_grad():
            loss = closure()
        self._kick()
        self._refresh()
        self._kick()
        self._drift()
        return loss
