"""SAM-SGLD: Langevin sampling with sharpness-aware gradients.

The gradient is taken at w + rho g / |g|, the worst point in a ball of radius `rho`, by a second call of the closure, so that
chains find flat regions of the posterior quickly; the noise is that of SGLD. Needs a closure. The loss is a mean over
num_data.
"""
import torch
from torch.optim import Optimizer


class SAMSGLD(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, rho=0.05):
        if rho < 0:
            raise ValueError("rho")
        super().__init__(params, dict(lr=lr, num_data=num_data, rho=rho))

    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        shifts = []
        with torch.no_grad():
            norm = torch.sqrt(
                sum((w.grad**2).sum() for g in self.param_groups for w in g["params"] if w.grad is not None)
            )
            for group in self.param_groups:
                for w in group["params"]:
                    if w.grad is None:
                        continue
                    shift = group["rho"] * w.grad / (norm + 1e-12)
                    w.add_(shift)
                    shifts.append((w, shift))
        with torch.enable_grad():
            self.zero_grad()
            closure()
        with torch.no_grad():
            for w, shift in shifts:
                w.sub_(shift)
            for group in self.param_groups:
                scale = (2 * group["lr"] / group["num_data"]) ** 0.5
                for w in group["params"]:
                    if w.grad is not None:
                        w.add_(w.grad, alpha=-group["lr"]).add_(torch.randn_like(w), alpha=scale)
        return loss


# wrong: rho is fixed as lr -> 0: the drift is the gradient of about L + rho |grad L|, another law.
# wrong: Variance 0.961 for 1 at rho = 0.05 on N(0, 1) (num_data = 1); more where the posterior is narrow beside rho.
