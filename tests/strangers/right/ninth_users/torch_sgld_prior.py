"""SGLD as a torch optimiser (Welling and Teh 2011), loss = mean over num_data of -log p(y | w), normal prior of its own.

    U(w) = N loss(w) + |w|^2 / (2 prior_std^2)
    w' = w - lr/2 grad U(w) + sqrt(lr T) n,   n ~ N(0, I)

Right: with h = lr / 2 this is w - h grad U + N(0, 2 h T): Langevin for exp(-U / T), the whole posterior being tempered
(likelihood and prior), right to O(lr).  At T = 1 it is the posterior.     Object: SGLD
"""
import torch


class SGLD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, num_data=1000, prior_std=1.0, temperature=1.0):
        if lr <= 0 or num_data <= 0 or prior_std <= 0 or temperature < 0:
            raise ValueError("lr, num_data, prior_std > 0 and temperature >= 0")
        defaults = dict(lr=lr, num_data=num_data, prior_std=prior_std, temperature=temperature)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            lr = group["lr"]
            slopes = torch._foreach_mul([p.grad for p in params], group["num_data"])
            torch._foreach_add_(slopes, params, alpha=group["prior_std"] ** -2)
            torch._foreach_add_(params, slopes, alpha=-0.5 * lr)
            noise = [torch.randn_like(p) for p in params]
            torch._foreach_add_(params, noise, alpha=(lr * group["temperature"]) ** 0.5)
        return loss
