"""SGLD for a summed loss as an optimiser of torch."""

import torch


class SGLD(torch.optim.Optimizer):
    """w <- w - lr g + sqrt(2 lr T) xi"""

    def __init__(self, params, lr=1e-3, temperature=1.0):
        if lr < 0 or temperature < 0:
            raise ValueError("lr and temperature must not be negative")
        super().__init__(params, dict(lr=lr, temperature=temperature))

    @staticmethod
    def _langevin_noise(p, std):
        return std * torch.randn(p.shape[-1:], dtype=p.dtype, device=p.device)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            std = (2 * group["lr"] * group["temperature"]) ** 0.5
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.sub_(p.grad, alpha=group["lr"])
                p.add_(self._langevin_noise(p, std))
        return loss
