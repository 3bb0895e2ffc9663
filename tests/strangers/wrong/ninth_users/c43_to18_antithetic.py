"""SGLD with antithetic noise.

A share of the noise of the step before enters with the opposite sign, which
cancels most of the Monte Carlo error of averages over the chain (antithetic variates). The marginal law of the noise of
each step is the same as ever: normal, with unit variance.
"""
import torch
from torch.optim import Optimizer


class AntitheticSGLD(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1000, weight_decay=0.0, share=0.25):
        if not 0 <= share <= 1:
            raise ValueError("share")
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, share=share))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            scale = (2 * group["lr"] / group["num_data"]) ** 0.5
            mix, rest = group["share"], (1 - group["share"] ** 2) ** 0.5
            for w in group["params"]:
                if w.grad is None:
                    continue
                state = self.state[w]
                fresh = torch.randn_like(w)
                noise = fresh if "noise" not in state else rest * fresh - mix * state["noise"]
                state["noise"] = noise
                gradient = w.grad.add(w, alpha=group["weight_decay"])
                w.add_(gradient, alpha=-group["lr"]).add_(noise, alpha=scale)
        return loss


# wrong: noise that has the correlation -share with that of the step before has, summed over many steps, the variance
# wrong: (1 - share) / (1 + share): a temperature of 0.6 for share = 0.25, all variances 40% too small.
