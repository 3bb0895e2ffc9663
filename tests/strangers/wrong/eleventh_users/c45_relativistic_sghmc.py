"""Relativistic SGHMC (Lu, Perrone, Hasenclever, Teh and Vollmer 2017), with the kinetic energy separable over coordinates.

    K(p) = m c^2 sqrt(1 + p^2 / (m c)^2),   velocity K'(p) = p / (m sqrt(1 + p^2 / (m c)^2)),

so that no parameter moves by more than lr c in a step, however large its gradient is: the dynamics clip by themselves.
`lr` is the step in time, and the loss is the potential, the sum over the data.
"""

import math

import torch


class RelativisticSGHMC(torch.optim.Optimizer):
    """Options: `mass` m, `speed` c, `friction` of the bath, and `temperature` of exp(-loss / temperature)."""

    def __init__(self, params, lr=1e-2, mass=1.0, speed=2.0, friction=1.0, temperature=1.0):
        for name, value in dict(lr=lr, mass=mass, speed=speed, friction=friction).items():
            if not value > 0:
                raise ValueError(f"{name} has to be positive, not {value}")
        if temperature < 0:
            raise ValueError("temperature cannot be negative")
        defaults = dict(lr=lr, mass=mass, speed=speed, friction=friction, temperature=temperature)
        super().__init__(params, defaults)

    @staticmethod
    def velocity(momentum, group):
        limit = group["mass"] * group["speed"]
        return momentum / (group["mass"] * (1 + (momentum / limit) ** 2).sqrt())

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        for group in self.param_groups:
            lr = group["lr"]
            damping = group["friction"] * lr
            noise_std = math.sqrt(2 * group["friction"] * group["temperature"] * lr)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["momentum"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                momentum = state["momentum"]
                # stochastic gradient, friction and noise, then the position with the new momentum
                momentum.add_(p.grad, alpha=-lr)
                momentum.mul_(1 - damping)
                momentum.add_(torch.randn_like(p), alpha=noise_std)
                p.add_(self.velocity(momentum, group), alpha=lr)
        return loss
