"""The Leimkuhler-Matthews scheme (2013) as an optimiser of torch: Langevin with noise averaged over two steps.

    w <- w - (lr / 2) grad U + sqrt(lr) (xi_n + xi_{n+1}) / 2,      grad U = num_data * grad + w / prior_std^2

in the units of Welling and Teh (2011), where the loss is the mean over the data. The second normal of a step is kept, and is
the first one of the next step. The noise has a generator of its own, apart from that of dropout and data loaders, which is
seeded once: by ``seed``, or by a draw from torch's generator.
"""

import math

import torch
from torch.optim import Optimizer


class LeimkuhlerMatthews(Optimizer):
    def __init__(self, params, lr=1e-6, num_data=1000, prior_std=10.0, seed=None):
        if lr <= 0:
            raise ValueError("lr must be positive")
        if num_data < 1:
            raise ValueError("num_data must be at least 1")
        if prior_std <= 0:
            raise ValueError("prior_std must be positive")
        super().__init__(params, dict(lr=lr, num_data=num_data, prior_std=prior_std))
        if seed is None:
            seed = int(torch.randint(2**62, ()))
        self.generator = torch.Generator().manual_seed(seed)

    def _normal(self, like):
        noise = torch.empty(like.shape, dtype=like.dtype)
        return noise.normal_(generator=self.generator).to(like.device)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        for group in self.param_groups:
            lr, num_data, prior_std = group["lr"], group["num_data"], group["prior_std"]
            for w in group["params"]:
                if w.grad is None:
                    continue
                state = self.state[w]
                if "noise" not in state:
                    state["noise"] = self._normal(w)
                slope = w.grad.mul(num_data).add_(w, alpha=prior_std**-2)
                fresh = self._normal(w)
                w.add_(slope, alpha=-0.5 * lr)
                w.add_(state["noise"].add(fresh), alpha=0.5 * math.sqrt(lr))
                state["noise"] = fresh
        return loss
