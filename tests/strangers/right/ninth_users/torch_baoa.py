"""Kinetic Langevin as a torch optimiser: kick, half drift, Ornstein-Uhlenbeck, half drift (BAOA), one gradient a step.

    p <- p - h grad U(w);   w <- w + h p / 2;   p <- e^(-gh) p + sqrt((1 - e^(-2gh)) T) n;   w <- w + h p / 2
    U = the loss that is differentiated (a sum over the data, prior included);   h = lr

Right: BAOA is a cyclic shift of BAOAB (the two half kicks at the same point are joined), so w has the law exp(-U/T) up to O(h^2);
per parameter group its own h and g.  Momenta start at N(0, T).        Object: BAOALangevin
"""
import math

import torch


class BAOALangevin(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, gamma=1.0, temperature=1.0):
        assert lr > 0 and gamma > 0 and temperature >= 0
        super().__init__(params, {"lr": lr, "gamma": gamma, "temperature": temperature})

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        with torch.no_grad():
            for group in self.param_groups:
                h, temperature = group["lr"], group["temperature"]
                c = math.exp(-group["gamma"] * h)
                s = math.sqrt(-math.expm1(-2 * group["gamma"] * h) * temperature)
                for w in group["params"]:
                    if w.grad is None:
                        continue
                    st = self.state[w]
                    if "p" not in st:
                        st["p"] = math.sqrt(temperature) * torch.randn_like(w)
                    p = st["p"]
                    p.add_(w.grad, alpha=-h)
                    w.add_(p, alpha=h / 2)
                    p.mul_(c).add_(torch.randn_like(p), alpha=s)
                    w.add_(p, alpha=h / 2)
        return loss
