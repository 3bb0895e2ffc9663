"""Low-precision SGLD: weights live on a fixed-point grid and are rounded stochastically.

After each update the weights are rounded to multiples of 2^-frac_bits, up or down with the probabilities that make the
rounding unbiased, so that the mean of the update is kept and training with 8-bit words is possible. The loss is a mean
over num_data, weight_decay the prior's precision over num_data.
"""
import torch
from torch.optim import Optimizer


def stochastic_round(values, gap):
    scaled = values / gap
    low = torch.floor(scaled)
    return gap * (low + (torch.rand_like(scaled) < scaled - low).to(values.dtype))


class LowPrecisionSGLD(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0, frac_bits=4):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, frac_bits=frac_bits))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            gap = 2.0 ** -group["frac_bits"]
            scale = (2 * group["lr"] / group["num_data"]) ** 0.5
            for w in group["params"]:
                if w.grad is None:
                    continue
                gradient = w.grad.add(w, alpha=group["weight_decay"])
                new = w - group["lr"] * gradient + scale * torch.randn_like(w)
                w.copy_(stochastic_round(new, gap))
        return loss


# wrong: rounding adds the variance gap^2 f (1 - f), about gap^2 / 6, to every step whatever its size: the law does not
# wrong: tend to the target as lr -> 0 (the noise of a step is 2 lr / num_data).
# wrong: variance on N(0, 1), num_data = 1: 1 + gap^2 / (12 lr): 1.33 at lr = 1e-3 and frac_bits = 4, unbounded below.
