"""Langevin dynamics with a diagonal RMSprop preconditioner that is learned in a burn-in and frozen after it.

During ``burn_in_steps`` steps a debiased running mean of squared gradients is collected, and the preconditioner follows it;
those draws are to be thrown away. Afterwards the preconditioner P is a constant of each parameter, and

    w <- w - lr P (grad + weight_decay w) + N(0, 2 lr P T / num_data)

keeps the posterior of a mean loss over ``num_data`` rows, without a term for the derivative of P. Weight decay is inside the
preconditioned gradient: a prior of precision ``num_data * weight_decay``. Without a burn-in P is the identity.
"""

import math

import torch


class FrozenRMSLangevin(torch.optim.Optimizer):
    def __init__(
        self, params, lr=1e-4, num_data=1000, burn_in_steps=500, alpha=0.99, eps=1e-3, weight_decay=0.0, temperature=1.0
    ):
        if not 0 <= alpha < 1:
            raise ValueError("alpha must be in [0, 1)")
        if eps <= 0:
            raise ValueError("eps must be positive")
        if lr < 0 or num_data < 1 or burn_in_steps < 0 or weight_decay < 0 or temperature < 0:
            raise ValueError("lr, num_data, burn_in_steps, weight_decay and temperature must not be negative")
        super().__init__(
            params,
            dict(
                lr=lr,
                num_data=num_data,
                burn_in_steps=burn_in_steps,
                alpha=alpha,
                eps=eps,
                weight_decay=weight_decay,
                temperature=temperature,
            ),
        )

    @staticmethod
    def _learn(state, gradient, alpha, eps):
        """One step of the running mean of squares; the preconditioner is 1 / (root mean square + eps)."""
        state["seen"] += 1
        state["square"].mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        mean = state["square"] / (1 - alpha ** state["seen"])
        state["scale"] = mean.sqrt_().add_(eps).reciprocal_()

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            variance = 2.0 * group["lr"] * group["temperature"] / group["num_data"]
            for w in group["params"]:
                if w.grad is None:
                    continue
                state = self.state[w]
                if not state:
                    state["seen"] = 0
                    state["square"] = torch.zeros_like(w)
                    state["scale"] = torch.ones_like(w)
                gradient = w.grad
                if group["weight_decay"] != 0:
                    gradient = gradient.add(w, alpha=group["weight_decay"])
                if state["seen"] < group["burn_in_steps"]:
                    self._learn(state, gradient, group["alpha"], group["eps"])
                scale = state["scale"]
                w.addcmul_(scale, gradient, value=-group["lr"])
                w.addcmul_(scale.sqrt(), torch.randn_like(w), value=math.sqrt(variance))
        return loss
