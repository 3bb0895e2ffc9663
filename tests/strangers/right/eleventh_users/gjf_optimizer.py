"""Verlet-type Langevin sampler of Gronbech-Jensen and Farago (2013) as an optimiser, in terms of positions alone.

    w_(n+1) = w_n + a (w_n - w_(n-1)) - b lr grad(w_n) + b (beta_n + beta_(n+1)) / 2,   b = (1 + a) / 2,
    beta ~ N(0, 4 lr (T / N) (1 - a) / (1 + a))

`a` is `momentum`. Each beta enters two steps in turn. With a = 0 it is the method of Leimkuhler and Matthews with lr / 2. The
closure's loss is the mean over `num_data` points; `weight_decay` is added to its gradient, a Gaussian prior of precision
num_data * weight_decay.
"""

from collections import defaultdict

import torch
from torch.optim import Optimizer


class GJF(Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0.7, num_data=1000, temperature=1.0, weight_decay=0.0, foreach=True):
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"Invalid momentum: {momentum}")
        if num_data <= 0 or temperature < 0.0 or weight_decay < 0.0:
            raise ValueError("num_data is positive, temperature and weight_decay are not negative")
        defaults = dict(
            lr=lr,
            momentum=momentum,
            num_data=num_data,
            temperature=temperature,
            weight_decay=weight_decay,
            foreach=foreach,
        )
        super().__init__(params, defaults)

    def _buffers(self, p):
        """Velocity in units of sqrt(lr), and the unit normal of the last step; made when a parameter first moves."""
        state = self.state[p]
        if not state:
            state["velocity"] = torch.zeros_like(p, memory_format=torch.preserve_format)
            state["kick"] = torch.randn_like(p)
        return state["velocity"], state["kick"]

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            buckets = defaultdict(lambda: ([], [], [], []))
            for p in group["params"]:
                if p.grad is None:
                    continue
                for column, tensor in zip(buckets[p.dtype, p.device], (p, p.grad, *self._buffers(p))):
                    column.append(tensor)
            for columns in buckets.values():
                move = _foreach_move if group["foreach"] else _single_move
                move(*columns, **_coefficients(group))
        return loss


def _coefficients(group):
    a, root = group["momentum"], group["lr"] ** 0.5
    b = (1 + a) / 2
    spread = (4 * group["temperature"] / group["num_data"] * (1 - a) / (1 + a)) ** 0.5
    return dict(a=a, b=b, root=root, spread=spread, decay=group["weight_decay"])


def _foreach_move(params, grads, velocities, kicks, *, a, b, root, spread, decay):  # noqa: PLR0913
    grads = torch._foreach_add(grads, params, alpha=decay)
    fresh = [torch.randn_like(p) for p in params]
    torch._foreach_mul_(velocities, a)
    torch._foreach_add_(velocities, grads, alpha=-b * root)
    torch._foreach_add_(velocities, kicks, alpha=b * spread / 2)
    torch._foreach_add_(velocities, fresh, alpha=b * spread / 2)
    torch._foreach_add_(params, velocities, alpha=root)
    torch._foreach_copy_(kicks, fresh)


def _single_move(params, grads, velocities, kicks, *, a, b, root, spread, decay):  # noqa: PLR0913
    for p, grad, velocity, kick in zip(params, grads, velocities, kicks):
        fresh = torch.randn_like(p)
        velocity.mul_(a).sub_(grad + decay * p, alpha=b * root).add_(kick + fresh, alpha=b * spread / 2)
        p.add_(velocity, alpha=root)
        kick.copy_(fresh)
