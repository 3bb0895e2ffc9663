"""Stochastic gradient UBU for torch: kinetic Langevin dynamics with one gradient a step, taken in its middle.

UBU is the splitting of Zapatero (2017) and of Sanz-Serna and Zygalakis (2021), used for neural networks by Paulin, Whalley, Chada and
Leimkuhler ("Sampling from Bayesian neural network posteriors with symmetric minibatch splitting Langevin dynamics", 2024). U is

    dx = v dt,   dv = -gamma v dt + sqrt(2 gamma T) dW        exactly, for half of a step

and B the kick v -= h grad U(x). The law of x is exp(-N loss / T) up to O(h^2).
"""

import math

import torch
from torch.optim.optimizer import Optimizer


def free_flight(gamma, t):
    """Coefficients of U over a time t at T = 1.

    Returns:
        eta, reach: v -> eta v, x -> x + reach v
        a: v += a n_1
        b, c: x += b n_1 + c n_2, with n_1 and n_2 independent and normal
    """
    eta = math.exp(-gamma * t)
    lost = -math.expm1(-gamma * t)
    reach = lost / gamma
    a = math.sqrt(-math.expm1(-2 * gamma * t))
    b = lost**2 / (gamma * a)  # covariance of the noises of x and v, (1 - eta)^2 / gamma, over a
    if gamma * t < 1e-2:
        g = gamma * t
        rest = g**3 * (1 / 6 - g**2 / 60 + 17 * g**4 / 10080)
    else:
        rest = 2 * gamma * t - 4 * math.tanh(gamma * t / 2)
    return eta, reach, a, b, math.sqrt(rest) / gamma


class UBU(Optimizer):
    """UBU with groups of parameters.

    Args:
        params: parameters or groups.
        lr: time step h.
        N: number of data; the loss is their mean.
        friction: gamma, the rate at which velocities forget.
        temperature: T.

    The gradient belongs to a point inside of the step, so that `step` needs a closure that zeroes gradients, computes the loss, calls
    `backward` and returns the loss.
    """

    def __init__(self, params, lr=1e-3, N=1000, friction=1.0, temperature=1.0):
        if min(lr, N, friction, temperature) <= 0:
            raise ValueError("lr, N, friction and temperature have to be positive")
        super().__init__(params, {"lr": lr, "N": N, "friction": friction, "temperature": temperature})

    def _fly(self):
        """Half of U, for all parameters."""
        for group in self.param_groups:
            eta, reach, a, b, c = free_flight(group["friction"], group["lr"] / 2)
            heat = math.sqrt(group["temperature"])
            for x in group["params"]:
                if not x.requires_grad:
                    continue
                state = self.state[x]
                if not state:
                    state["v"] = heat * torch.randn_like(x)
                v, n1, n2 = state["v"], torch.randn_like(x), torch.randn_like(x)
                x.add_(reach * v + heat * (b * n1 + c * n2))
                v.mul_(eta).add_(n1, alpha=heat * a)

    @torch.no_grad()
    def step(self, closure):
        self._fly()
        with torch.enable_grad():
            loss = closure()
        for group in self.param_groups:
            for x in group["params"]:
                if x.grad is not None:
                    self.state[x]["v"].sub_(x.grad, alpha=group["lr"] * group["N"])
        self._fly()
        return loss
