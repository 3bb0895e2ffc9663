"""Preconditioned SGLD (Li, Chen, Carlson, Carin, 2016) as an optimiser, with a preconditioner that is frozen after burn-in."""

import torch
from torch.optim import Optimizer


class PSGLD(Optimizer):
    """SGLD with the diagonal metric G = 1 / (eps + sqrt(V)) of RMSprop.

        theta <- theta - lr / 2 * G * (N * grad + theta / prior_std^2) + N(0, lr * G)

    `grad` is that of the mean negative log likelihood over a minibatch, N is `num_data`, and the prior is N(0, prior_std^2). V is a running
    average of squared gradients during the first `num_burn_in_steps` steps and stays as it is afterwards, so that no correction for a
    metric that moves is due.

    Args:
        params: parameters, or dicts of parameter groups.
        lr: step size; both the drift (half of it) and the noise (its root) follow it.
        num_data: number of data points.
        prior_std: standard deviation of the Gaussian prior.
        alpha: decay of the average of squared gradients.
        eps: added to the root of the average.
        num_burn_in_steps: steps in which the preconditioner adapts; their positions are to be thrown away.
    """

    def __init__(self, params, lr=1e-5, num_data=1000, prior_std=3.0, alpha=0.99, eps=1e-5, num_burn_in_steps=500):
        if lr <= 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if num_data <= 0:
            raise ValueError(f"Invalid number of data: {num_data}")
        if prior_std <= 0:
            raise ValueError(f"Invalid prior_std: {prior_std}")
        if not 0 <= alpha < 1:
            raise ValueError(f"Invalid alpha: {alpha}")
        if eps < 0 or num_burn_in_steps < 0:
            raise ValueError("eps and num_burn_in_steps cannot be negative")
        defaults = dict(
            lr=lr, num_data=num_data, prior_std=prior_std, alpha=alpha, eps=eps, num_burn_in_steps=num_burn_in_steps
        )
        super().__init__(params, defaults)

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
                if len(state) == 0:
                    state["iteration"] = 0
                    state["square_avg"] = torch.ones_like(p)
                square_avg = state["square_avg"]
                if state["iteration"] < group["num_burn_in_steps"]:
                    square_avg.mul_(group["alpha"]).addcmul_(p.grad, p.grad, value=1 - group["alpha"])
                    state["iteration"] += 1
                metric = 1.0 / (square_avg.sqrt() + group["eps"])
                slope = group["num_data"] * p.grad + p / group["prior_std"] ** 2
                noise = torch.randn_like(p) * (group["lr"] * metric).sqrt()
                p.add_(-0.5 * group["lr"] * metric * slope + noise)
        return loss
