"""pSGLD (Li et al. 2016) with a preconditioner that is learned in a burn-in and kept from then on, for torch.

The square average V of the gradient is that of RMSprop, and G = 1 / (sqrt(V) + eps):

    w <- w - lr G g + N(0, 2 lr G / N)

for the gradient g of a loss that is the mean over N = `num_data` data. While V learns, G depends on the position, and
the drift lacks the term Gamma; after `burn_in` steps G is a constant, and no such term is due. The running average
goes on, as a monitor of the scale of the gradients (`grad_rms`).
"""

import math

import torch
from torch.optim import Optimizer


class FrozenPSGLD(Optimizer):
    """pSGLD whose preconditioner is that of the end of the burn-in."""

    def __init__(self, params, lr=1e-4, num_data=1000, alpha=0.99, eps=1e-3, prior_precision=1.0, burn_in=500):
        if lr <= 0:
            raise ValueError(f"invalid learning rate: {lr}")
        if num_data < 1:
            raise ValueError(f"invalid number of data: {num_data}")
        if not 0 < alpha < 1:
            raise ValueError(f"invalid alpha: {alpha}")
        if eps <= 0:
            raise ValueError(f"invalid eps: {eps}")
        if burn_in < 0:
            raise ValueError(f"invalid burn-in: {burn_in}")
        defaults = dict(
            lr=lr, num_data=num_data, alpha=alpha, eps=eps, prior_precision=prior_precision, burn_in=burn_in
        )
        super().__init__(params, defaults)

    def grad_rms(self, p):
        """Root mean square of the recent gradients of a parameter."""
        return self.state[p]["square_avg"].sqrt()

    def _preconditioner(self, p, gradient, group):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["square_avg"] = torch.ones_like(p)
            state["kept"] = state["square_avg"].clone()
        state["step"] += 1
        square_avg = state["square_avg"]
        square_avg.mul_(group["alpha"]).addcmul_(gradient, gradient, value=1 - group["alpha"])
        if state["step"] <= max(group["burn_in"], 1):
            state["kept"] = square_avg
        return state["kept"].sqrt().add_(group["eps"]).reciprocal_()

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, num_data = group["lr"], group["num_data"]
            std = math.sqrt(2 * lr / num_data)
            for p in group["params"]:
                if p.grad is None:
                    continue
                gradient = p.grad.add(p, alpha=group["prior_precision"] / num_data)
                g = self._preconditioner(p, gradient, group)
                p.addcmul_(g, gradient, value=-lr)
                p.addcmul_(g.sqrt(), torch.randn_like(p), value=std)
        return loss
