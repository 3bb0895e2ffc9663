"""SGLD with momentum and a diagonal preconditioner that is learnt in a burn-in, for torch."""

import math

import torch
from torch.optim import Optimizer


class MomentumPSGLD(Optimizer):
    r"""Draws from the posterior of a model whose loss is the mean over `num_data` data.

    With G the preconditioner and beta the momentum,

        v <- beta v - lr G (grad + weight_decay theta) + sqrt(2 (1 - beta) lr G T / num_data) xi
        theta <- theta + v

    so that a gradient and a draw each move theta by 1 / (1 - beta) in all, and the law tends to

        exp(-num_data (loss(theta) + weight_decay |theta|^2 / 2) / T)

    as lr -> 0: `weight_decay` is a Gaussian prior of precision num_data * weight_decay at T = 1.

    G = 1 / (eps + sqrt(s)) comes from squares of gradients that are averaged in the first `num_burn_in_steps` steps and kept from then
    on: a preconditioner that goes on learning would need the divergence of G as a further drift. Without a burn-in G is 1.

    Args:
        params: parameters or groups of them; every option may differ between groups.
        lr: learning rate, in units of the mean loss.
        num_data: number of data that the loss is a mean of.
        momentum: share of the velocity that is kept.
        weight_decay: decay, added to the gradient.
        temperature: T; below 1 for a cold posterior.
        num_burn_in_steps: steps in which the preconditioner learns. Discard them.
        alpha: share of the running average of squares that is kept in a step.
        eps: added to the root of the average.
    """

    def __init__(  # noqa: PLR0913
        self,
        params,
        lr=1e-4,
        num_data=1000,
        momentum=0.9,
        weight_decay=0.0,
        temperature=1.0,
        num_burn_in_steps=1000,
        alpha=0.99,
        eps=1e-5,
    ):
        if lr <= 0 or num_data <= 0:
            raise ValueError(f"lr and num_data have to be positive, not {lr} and {num_data}")
        if not 0.0 <= momentum < 1.0 or not 0.0 <= alpha < 1.0:
            raise ValueError("momentum and alpha have to be in [0, 1)")
        if weight_decay < 0 or temperature < 0 or num_burn_in_steps < 0 or eps < 0:
            raise ValueError("weight_decay, temperature, num_burn_in_steps and eps have to be 0 or more")
        defaults = dict(
            lr=lr,
            num_data=num_data,
            momentum=momentum,
            weight_decay=weight_decay,
            temperature=temperature,
            num_burn_in_steps=num_burn_in_steps,
            alpha=alpha,
            eps=eps,
        )
        super().__init__(params, defaults)

    def _begin(self, p):
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["velocity"] = torch.zeros_like(p)
            state["square_avg"] = torch.ones_like(p)
        return state

    @torch.no_grad()
    def step(self, closure=None):
        """One step; returns the loss if there is a closure."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta, lr = group["momentum"], group["lr"]
            spread = math.sqrt(2 * (1 - beta) * lr * group["temperature"] / group["num_data"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._begin(p)
                grad = p.grad.add(p, alpha=group["weight_decay"])
                if state["step"] < group["num_burn_in_steps"]:
                    state["square_avg"].mul_(group["alpha"]).addcmul_(grad, grad, value=1 - group["alpha"])
                state["step"] += 1
                precondition = state["square_avg"].sqrt().add_(group["eps"]).reciprocal_()
                velocity = state["velocity"]
                velocity.mul_(beta).addcmul_(precondition, grad, value=-lr)
                velocity.addcmul_(precondition.sqrt_(), torch.randn_like(p), value=spread)
                p.add_(velocity)
        return loss
