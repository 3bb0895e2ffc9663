"""SGHMC (Chen et al. 2014) for torch in the form of SGD with momentum; a diagonal preconditioner learnt in a burn-in only.

    m' = mu m - lr M^-1 (N grad loss(w) + N weight_decay w) + sqrt(2 lr (1 - mu) T) M^(-1/2) n,    w' = w + m'

Right: as lr -> 0 a draw or a gradient moves w by 1 / (1 - mu) times itself in all: drift lr/(1 - mu) M^-1 grad U and noise of
variance 2 lr T / (1 - mu) M^-1 a step, which is Langevin for exp(-U / T) with the constant metric M^-1, at every fixed mu.
M = 1 until `burn_in` steps have passed, then the root of the mean square gradient, fixed from there on.
U = N (loss + weight_decay |w|^2 / 2).       Object: SGHMC
"""
import torch
from torch.optim import Optimizer


class SGHMC(Optimizer):
    def __init__(self, params, lr=1e-5, momentum=0.9, num_data=1000, weight_decay=1e-3, temperature=1.0, burn_in=0, eps=1e-4):
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"Invalid momentum: {momentum}")
        if lr <= 0.0 or num_data <= 0 or weight_decay < 0.0 or temperature < 0.0 or burn_in < 0 or eps <= 0.0:
            raise ValueError("Invalid option")
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                num_data=num_data,
                weight_decay=weight_decay,
                temperature=temperature,
                burn_in=burn_in,
                eps=eps,
            ),
        )

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, mu, n = group["lr"], group["momentum"], group["num_data"]
            for w in group["params"]:
                if w.grad is None:
                    continue
                state = self.state[w]
                if not state:
                    state["step"] = 0
                    state["buffer"] = torch.zeros_like(w)
                    state["inverse_mass"] = torch.ones_like(w)
                    state["mean_square"] = torch.zeros_like(w)
                grad = w.grad.add(w, alpha=group["weight_decay"]).mul_(n)  # of U
                if state["step"] < group["burn_in"]:
                    state["step"] += 1
                    state["mean_square"].add_((grad**2 - state["mean_square"]) / state["step"])
                    if state["step"] == group["burn_in"]:
                        state["inverse_mass"] = 1.0 / (state["mean_square"].sqrt() + group["eps"])
                inv = state["inverse_mass"]
                noise = torch.randn_like(w).mul_((2 * lr * (1 - mu) * group["temperature"] * inv).sqrt())
                state["buffer"].mul_(mu).sub_(lr * inv * grad).add_(noise)
                w.add_(state["buffer"])
        return loss
