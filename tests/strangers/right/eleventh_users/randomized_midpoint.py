"""Randomised midpoint method for overdamped Langevin dynamics (Shen and Lee 2019; He, Balasubramanian and Erdogdu 2020).

A step looks at the gradient at a uniform fraction u of itself, where the Brownian path is W(u lr), and goes on from its
beginning with that gradient and the path's end W(lr) = W(u lr) + N(0, (1 - u) lr). `step` calls the closure twice, which is to
return the loss summed over the data; `prior_std` is that of a Gaussian prior on all parameters of a group.
"""

import torch
from torch.optim.optimizer import Optimizer


class RandomizedMidpoint(Optimizer):
    def __init__(self, params, lr=1e-4, prior_std=1.0, maximize=False):
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not prior_std > 0.0:
            raise ValueError(f"Invalid prior_std: {prior_std}")
        super().__init__(params, {"lr": lr, "prior_std": prior_std, "maximize": maximize})

    def _moving(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.requires_grad:
                    yield group, p

    @staticmethod
    def _slope(group, p):
        """Gradient of minus the log posterior; with `maximize` the closure returns the log likelihood."""
        prior = p / group["prior_std"] ** 2
        if p.grad is None:
            return prior
        return prior - p.grad if group["maximize"] else prior + p.grad

    @torch.no_grad()
    def step(self, closure):
        evaluate = torch.enable_grad()(closure)
        loss = evaluate()

        fraction = torch.rand((), dtype=torch.float64).item()
        begun = []
        for group, p in self._moving():
            start = p.clone()
            path = torch.randn_like(p).mul_((2 * fraction * group["lr"]) ** 0.5)
            p.sub_(self._slope(group, p), alpha=fraction * group["lr"]).add_(path)
            begun.append((group, p, start, path))

        evaluate()
        for group, p, start, path in begun:
            slope = self._slope(group, p)
            rest = torch.randn_like(p).mul_((2 * (1 - fraction) * group["lr"]) ** 0.5)
            p.copy_(start).sub_(slope, alpha=group["lr"]).add_(path).add_(rest)
        return loss
