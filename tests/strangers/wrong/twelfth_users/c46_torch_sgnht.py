"""Stochastic-gradient Nose-Hoover thermostat (Ding et al. 2014) as an optimiser of torch.

With momenta v of unit mass, the gradient g of a loss that is the mean over `num_data` data, and a thermostat xi,

    v   <- v - lr xi v - lr num_data g + sqrt(2 A lr) N(0, I)
    w   <- w + lr v
    xi  <- xi + lr (kinetic temperature - 1)

lr is the time that passes in a step. The thermostat takes up the noise of minibatches, whatever its size, by raising
the friction until the momenta have temperature 1.

    sampler = SGNHT(model.parameters(), lr=1e-3, num_data=len(dataset))
    for x, y in loader:
        sampler.zero_grad()
        loss(model(x), y).backward()
        sampler.step()
"""

import math

import torch
from torch.optim import Optimizer


class SGNHT(Optimizer):
    """SGNHT with one thermostat for each group of parameters.

    lr               time of a step
    num_data         number of data over which the loss is a mean
    diffusion        A, the variance of the injected noise is 2 A lr; also where the thermostat starts
    prior_precision  precision p of a prior N(0, 1 / p) of the weights
    """

    def __init__(self, params, lr=1e-3, num_data=1000, diffusion=1.0, prior_precision=1.0):
        if lr <= 0:
            raise ValueError(f"invalid learning rate: {lr}")
        if num_data < 1:
            raise ValueError(f"invalid number of data: {num_data}")
        if diffusion <= 0:
            raise ValueError(f"invalid diffusion: {diffusion}")
        if prior_precision < 0:
            raise ValueError(f"invalid precision of the prior: {prior_precision}")
        defaults = dict(lr=lr, num_data=num_data, diffusion=diffusion, prior_precision=prior_precision)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group):
        lr, num_data = group["lr"], group["num_data"]
        std = math.sqrt(2 * group["diffusion"] * lr)
        xi = group.setdefault("thermostat", group["diffusion"])
        temperature = 0.0
        for p in group["params"]:
            if p.grad is None:
                continue
            state = self.state[p]
            if not state:
                state["momentum"] = torch.randn_like(p)
            v = state["momentum"]
            force = p.grad.mul(num_data).add_(p, alpha=group["prior_precision"])
            v.mul_(1 - lr * xi).add_(force, alpha=-lr).add_(torch.randn_like(p), alpha=std)
            p.add_(v, alpha=lr)
            temperature = temperature + v.pow(2).mean()
        group["thermostat"] = xi + lr * (temperature - 1)
