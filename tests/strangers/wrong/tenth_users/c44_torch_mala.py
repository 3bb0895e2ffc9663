"""MALA as an optimiser of PyTorch.

    proposal = w - lr grad U(w) + sqrt(2 lr) N(0, 1)
    accepted with probability min(1, exp(U(w) - U(proposal)) q(w | proposal) / q(proposal | w))

`step` needs a closure that zeroes the gradients, calls backward, and returns the potential U, minus the log posterior summed over all
data. Parameters of layers that a loss does not reach have no gradient and stay where they are.
"""

import math

import torch


class MALA(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        if lr <= 0:
            raise ValueError("lr must be positive")
        super().__init__(params, {"lr": lr})
        self.num_steps = 0
        self.mean_acceptance = 0.0

    def _moving(self):
        return [(group, p) for group in self.param_groups for p in group["params"] if p.grad is not None]

    @staticmethod
    def _log_density(to, start, gradient, lr):
        """log q(to | start) up to a constant."""
        return -float(torch.sum((to - start + lr * gradient) ** 2)) / (4 * lr)

    def _remember_and_propose(self, moving):
        """Moves all parameters to the proposal; returns the sum of log q(proposal | w)."""
        forward = 0.0
        for group, p in moving:
            old, gradient = p.detach().clone(), p.grad.detach().clone()
            p.add_(gradient, alpha=-group["lr"]).add_(torch.randn_like(p), alpha=math.sqrt(2 * group["lr"]))
            forward += self._log_density(p, old, gradient, group["lr"])
            self.state[p]["old"] = old
        return forward

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            before = closure()
        moving = self._moving()
        forward = self._remember_and_propose(moving)

        with torch.enable_grad():
            after = closure()
        backward = sum(self._log_density(self.state[p]["old"], p, p.grad, group["lr"]) for group, p in moving)

        log_ratio = float(before) - float(after) + backward - forward
        probability = math.exp(min(0.0, log_ratio)) if math.isfinite(log_ratio) else 0.0
        for _, p in moving:
            if torch.rand(()) >= probability:
                p.copy_(self.state[p]["old"])

        self.num_steps += 1
        self.mean_acceptance += (probability - self.mean_acceptance) / self.num_steps
        return before
