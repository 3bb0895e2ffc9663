"""A thermostat, a heavy ball with its prior apart, and HMC with a closure, as optimisers of torch."""

import torch
from torch.optim import Optimizer

# --- Stochastic-gradient Nose-Hoover (Ding et al. 2014), one thermostat a tensor -------------------------------------------
#
# The loss is U itself, and lr a time h. v' = v - h xi v - h g + N(0, 2 h A), w' = w + h v', xi' = xi + h (|v'|^2 / n - 1), n the
# number of entries of the tensor. With xi ~ N(A, 1/n), v ~ N(0, I): the drift -xi v gives n xi - xi |v|^2 in the stationary
# equation, the noise A |v|^2 - A n, the thermostat (|v|^2 / n - 1) n (xi - A); their sum is 0. So exp(-U) up to O(h).


class NoseHoover(Optimizer):
    def __init__(self, params, lr=1e-2, friction=1.0):
        if friction <= 0:
            raise ValueError("friction > 0")
        super().__init__(params, dict(lr=lr, friction=friction))

    def _start(self, p, friction):
        state = self.state[p]
        if not state:
            state["v"] = torch.randn_like(p)
            state["xi"] = torch.full((), friction, dtype=p.dtype, device=p.device)
        return state

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            h, friction = group["lr"], group["friction"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._start(p, friction)
                v, xi = state["v"], state["xi"]
                n = p.numel()
                v.mul_(1 - h * xi).add_(p.grad, alpha=-h)
                v.add_(torch.randn_like(p), alpha=(2 * h * friction) ** 0.5)
                p.add_(v, alpha=h)
                xi.add_(v.square().sum() / n - 1, alpha=h)
        return loss


# --- SGLD with a heavy ball, and the prior as decoupled decay ----------------------------------------------------------------
#
# The loss is the mean over N = num_data data. u' = mu u - (1 - mu) lr g + (1 - mu) N(0, 2 lr / N), w' = (1 - lr P / N) w + u'. A
# gradient moves w by lr g in all, a draw by sqrt(2 lr / N): a = lr, s^2 = 2 lr / N, tau = s^2 / 2a = 1 / N. The decay is not
# averaged: b = lr P / N, and the prior has the precision (b / a) / tau = P, whatever mu is.


class HeavyBallSGLD(Optimizer):
    def __init__(self, params, lr=1e-4, num_data=1, momentum=0.9, prior_precision=1.0):
        if not 0 <= momentum < 1:
            raise ValueError("0 <= momentum < 1")
        defaults = dict(lr=lr, num_data=num_data, momentum=momentum, prior_precision=prior_precision)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, n, mu = group["lr"], group["num_data"], group["momentum"]
            scale = (2 * lr / n) ** 0.5
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                u = state["momentum_buffer"]
                u.mul_(mu).add_(p.grad, alpha=-(1 - mu) * lr).add_(torch.randn_like(p), alpha=(1 - mu) * scale)
                p.mul_(1 - lr * group["prior_precision"] / n).add_(u)
        return loss


# --- HMC whose step takes a closure --------------------------------------------------------------------------------------------
#
# The loss is the mean over N = num_data data, U = N x loss. Momenta N(0, I) are drawn in each step, num_leapfrog steps of size
# sqrt(2 lr / N) / num_leapfrog (of each group its own, a diagonal scaling) are taken, and the end is accepted with probability
# min(1, exp(-Delta H)), H = U + the kinetic energy of all tensors. For small lr w moves by -lr g + N(0, 2 lr / N); the law is
# exp(-U) at each lr.


class ClosureHMC(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1, num_leapfrog=2):
        if num_leapfrog < 1:
            raise ValueError("num_leapfrog >= 1")
        super().__init__(params, dict(lr=lr, num_data=num_data, num_leapfrog=num_leapfrog))

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        first = self.param_groups[0]
        n, steps = first["num_data"], first["num_leapfrog"]
        loss = closure()
        moving = []
        for group in self.param_groups:
            size = (2 * group["lr"] / n) ** 0.5 / steps
            moving += [(p, size) for p in group["params"] if p.grad is not None]
        kept = [p.clone() for p, _ in moving]
        momenta = []
        for p, _ in moving:
            v = torch.randn_like(p)
            momenta.append(v)
        before = n * loss + 0.5 * sum(v.square().sum() for v in momenta)
        for _ in range(steps):
            for (p, size), v in zip(moving, momenta):
                v.add_(p.grad, alpha=-0.5 * size * n)
                p.add_(v, alpha=size)
            end = closure()
            for (p, size), v in zip(moving, momenta):
                v.add_(p.grad, alpha=-0.5 * size * n)
        after = n * end + 0.5 * sum(v.square().sum() for v in momenta)
        if torch.rand((), dtype=torch.float64).log() < before - after:
            return end
        for (p, _), old in zip(moving, kept):
            p.copy_(old)
        return loss
