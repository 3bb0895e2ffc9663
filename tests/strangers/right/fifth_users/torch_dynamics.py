"""Optimisers with a state: SGHMC, underdamped Langevin, a Nose-Hoover thermostat, pSGLD with a burn-in."""

import math
from typing import Callable, Iterable

import torch
from torch.optim.optimizer import Optimizer


class SGHMC(Optimizer):
    r"""Equation (15) of Chen et al. (2014): v <- (1 - a) v - lr grad U + N(0, 2 a lr T), theta <- theta + v.

    The loss is the mean over ``num_data`` data.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 1e-5,
        momentum_decay: float = 0.1,
        num_data: int = 1000,
        temperature: float = 1.0,
    ) -> None:
        if not 0.0 < momentum_decay < 1.0:
            raise ValueError(f"momentum_decay must be in (0, 1), got {momentum_decay}")
        defaults = dict(lr=lr, momentum_decay=momentum_decay, num_data=num_data, temperature=temperature)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable | None = None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        for group in self.param_groups:
            lr, alpha = group["lr"], group["momentum_decay"]
            sigma = math.sqrt(2.0 * alpha * lr * group["temperature"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                v = state["momentum_buffer"]
                v.mul_(1.0 - alpha).add_(p.grad, alpha=-lr * group["num_data"]).add_(torch.randn_like(v), alpha=sigma)
                p.add_(v)
        return loss


class UnderdampedLangevin(Optimizer):
    """Kick, half drift, exact OU, half drift: BAOAB seen from the middle of its kick. lr is the time step. Summed loss."""

    def __init__(self, params, lr=1e-2, friction=1.0, temperature=1.0):
        for name, value in (("lr", lr), ("friction", friction), ("temperature", temperature)):
            if value <= 0:
                raise ValueError(f"{name} has to be positive and is {value}")
        super().__init__(params, dict(lr=lr, friction=friction, temperature=temperature))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            h = group["lr"]
            c = math.exp(-group["friction"] * h)
            s = math.sqrt(-math.expm1(-2.0 * group["friction"] * h) * group["temperature"])
            for p in filter(lambda q: q.grad is not None, group["params"]):
                v = self.state[p].setdefault("velocity", torch.zeros_like(p))
                v.sub_(p.grad, alpha=h)
                p.add_(v, alpha=h / 2)
                v.mul_(c).add_(torch.randn(v.shape, dtype=v.dtype, device=v.device), alpha=s)
                p.add_(v, alpha=h / 2)
        return loss


class SGNHT(Optimizer):
    """Ding et al. (2014), a thermostat for each parameter tensor. Summed loss."""

    def __init__(self, params, lr=1e-2, diffusion=1.0):
        if diffusion <= 0:
            raise ValueError("diffusion must be positive")
        super().__init__(params, dict(lr=lr, diffusion=diffusion))

    def _init_state(self, p, group):
        state = self.state[p]
        if len(state) == 0:
            state["momentum"] = torch.zeros_like(p)
            state["xi"] = torch.full((), group["diffusion"], dtype=p.dtype)
        return state

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            h, A = group["lr"], group["diffusion"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._init_state(p, group)
                r, xi = state["momentum"], state["xi"]
                r.add_(-h * xi * r - h * p.grad + math.sqrt(2 * A * h) * torch.randn_like(r))
                p.add_(r, alpha=h)
                xi.add_(h * (r.pow(2).mean() - 1.0))
        return loss


class PSGLD(Optimizer):
    """RMSprop-preconditioned SGLD; the preconditioner learns during the burn-in only and is then kept. Summed loss."""

    def __init__(self, params, lr=1e-3, alpha=0.99, eps=1e-1, num_burn_in_steps=1000):
        if not 0.0 <= alpha < 1.0 or eps <= 0:
            raise ValueError(f"alpha = {alpha}, eps = {eps}")
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps, num_burn_in_steps=num_burn_in_steps))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if not state:
                    state["step"] = 0
                    state["square_avg"] = torch.ones_like(p)
                state["step"] += 1
                V = state["square_avg"]
                if state["step"] <= group["num_burn_in_steps"]:
                    V.mul_(group["alpha"]).addcmul_(g, g, value=1.0 - group["alpha"])
                G = V.sqrt().add_(group["eps"]).reciprocal_()
                p.addcmul_(G, g, value=-group["lr"])
                p.addcmul_(G.sqrt(), torch.randn_like(p), value=math.sqrt(2.0 * group["lr"]))
        return loss
