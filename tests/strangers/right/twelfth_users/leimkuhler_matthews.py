"""Langevin sampling with averaged noise (Leimkuhler and Matthews, 2013) behind the interface of torch.optim.

Plain SGLD adds sqrt(2 lr) R_n to a gradient step; here the noise of a step is sqrt(lr / 2) (R_n + R_(n+1)), each draw being used in
two successive steps. At the cost of one buffer the bias of averages falls from O(lr) to O(lr^2) for exact gradients.
"""

from collections.abc import Callable

import torch


class LMLangevin(torch.optim.Optimizer):
    """Sampler of exp(-num_data * loss / temperature) times the prior that weight decay stands for.

    Args:
        params: iterable of parameters, or of dicts that define groups.
        lr: learning rate on the scale of the mean loss.
        num_data: number of data that the loss is a mean over.
        temperature: of the posterior.
        weight_decay: L2 penalty, added to the gradient.
        maximize: take the objective for a mean log likelihood, and climb it.
    """

    def __init__(self, params, lr: float = 1e-2, num_data: int = 1000, temperature: float = 1.0,
                 weight_decay: float = 0.0, *, maximize: bool = False):  # fmt: skip
        for name, value in (("lr", lr), ("num_data", num_data), ("temperature", temperature)):
            if not value > 0:
                raise ValueError(f"{name} should be positive: {value}")
        if weight_decay < 0:
            raise ValueError(f"weight_decay should not be negative: {weight_decay}")
        defaults = {
            "lr": lr,
            "num_data": num_data,
            "temperature": temperature,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        """A step; with a closure, the loss is evaluated first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            std = (0.5 * group["lr"] * group["temperature"] / group["num_data"]) ** 0.5
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group, std)
        return loss

    def _update(self, p, group, std):
        state = self.state[p]
        if "last_draw" not in state:
            state["last_draw"] = torch.randn_like(p)
        d_p = -p.grad if group["maximize"] else p.grad
        d_p = d_p + group["weight_decay"] * p
        fresh = torch.randn_like(p)
        p.sub_(group["lr"] * d_p)
        p.add_(std * (state["last_draw"] + fresh))
        state["last_draw"].copy_(fresh)
