"""SGLD on lists of tensors, a metric shared by rows, and SGHMC with a banded friction, as optimisers of torch.

The loss is the mean over num_data data; U = num_data x loss.
"""

import torch
from torch.optim import Optimizer

# --- SGLD with foreach kernels ----------------------------------------------------------------------------------------
#
# w' = w - lr (g + weight_decay w) + N(0, 2 lr / N): tau = s^2 / 2a = 1 / N, temperature 1 of U plus the prior of precision
# N weight_decay. The draws of a group are made at once, in one buffer that is kept, and every tensor has a slice of its own.


class FastSGLD(Optimizer):
    _scratch = None

    def __init__(self, params, lr=1e-3, num_data=1, weight_decay=0.0, foreach=True):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, foreach=foreach))

    def _noise(self, params):
        sizes = [p.numel() for p in params]
        needed = sum(sizes)
        if self._scratch is None or self._scratch.numel() < needed or self._scratch.dtype != params[0].dtype:
            self._scratch = torch.empty(needed, dtype=params[0].dtype, device=params[0].device)
        draws, start = [], 0
        for p, size in zip(params, sizes):
            draws.append(self._scratch[start : start + size].view(p.shape).normal_())
            start += size
        return draws

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, decay = group["lr"], group["weight_decay"]
            scale = (2 * lr / group["num_data"]) ** 0.5
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            if group["foreach"]:
                grads = [p.grad for p in params]
                if decay != 0:
                    grads = torch._foreach_add(grads, params, alpha=decay)
                noise = self._noise(params)
                torch._foreach_add_(params, grads, alpha=-lr)
                torch._foreach_add_(params, noise, alpha=scale)
            else:
                for p in params:
                    p.add_(p.grad + decay * p, alpha=-lr)
                    p.add_(self._noise([p])[0], alpha=scale)
        return loss


# --- A metric shared by the entries of a row, with its divergence --------------------------------------------------------
#
# G(w) = f(m) I within each row (last axis, of n entries), m = mean of w_j^2, f(m) = floor + (1 - floor) / (1 + m). Then
# Gamma_i = sum_j d_j G_ij = d_i f(m) = f'(m) 2 w_i / n, and
#     w' = w - lr (G g - Gamma / N) + N(0, 2 lr G / N)
# is Euler-Maruyama, in times of lr / N, of dw = (-G grad U + Gamma) dt + sqrt(2 G) dB, which keeps exp(-U): order 1.


class RowSGLD(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1, floor=0.2):
        if not 0 < floor <= 1:
            raise ValueError("0 < floor <= 1")
        super().__init__(params, dict(lr=lr, num_data=num_data, floor=floor))

    @staticmethod
    def _metric(p, floor):
        n = p.shape[-1] if p.dim() else 1
        square = p * p
        m = square.mean(dim=-1, keepdim=True) if p.dim() else square
        metric = floor + (1 - floor) / (1 + m)
        slope = -(1 - floor) / (1 + m) ** 2
        return metric, slope * 2 * p / n

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, n_data = group["lr"], group["num_data"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                metric, divergence = self._metric(p, group["floor"])
                drift = metric * p.grad - divergence / n_data
                spread = (2 * lr / n_data * metric).sqrt()
                p.add_(drift, alpha=-lr)
                p.add_(spread * torch.randn_like(p))
        return loss


# --- SGHMC with friction between neighbours ------------------------------------------------------------------------------
#
# Along the last axis the friction is A = friction C, C = L L', L = 1 + coupling S, (S v)_i = v_{i-1}, v_0 = 0. With
#     v' = v - A v - lr g + N(0, 2 lr A / N),    w' = w + v'
# the corrected position y = w + A^-1 (1 - A) v moves by A^-1 (-lr g + noise): drift -(lr/N) A^-1 grad U, covariance
# A^-1 (2 lr A / N) A^-1 = 2 (lr/N) A^-1, Langevin with the metric A^-1, constant: exp(-U) as lr -> 0. The noise is
# sqrt(2 lr friction / N) L xi. Eigenvalues of A are below friction (1 + |coupling|)^2, which has to be below 2.


def down(v):
    """(S v)_i = v_{i-1} along the last axis."""
    shifted = torch.zeros_like(v)
    if v.dim():
        shifted[..., 1:] = v[..., :-1]
    return shifted


def up(v):
    """(S' v)_i = v_{i+1} along the last axis."""
    shifted = torch.zeros_like(v)
    if v.dim():
        shifted[..., :-1] = v[..., 1:]
    return shifted


class BandSGHMC(Optimizer):
    def __init__(self, params, lr=1e-4, num_data=1, friction=0.25, coupling=0.6):
        if not 0 < friction * (1 + abs(coupling)) ** 2 < 2:
            raise ValueError("friction (1 + |coupling|)^2 has to be in (0, 2)")
        super().__init__(params, dict(lr=lr, num_data=num_data, friction=friction, coupling=coupling))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, friction, coupling = group["lr"], group["friction"], group["coupling"]
            scale = (2 * lr * friction / group["num_data"]) ** 0.5
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                v = state["momentum"]
                half = v + coupling * up(v)
                drag = half + coupling * down(half)
                xi = torch.randn_like(p)
                noise = xi + coupling * down(xi)
                v.add_(drag, alpha=-friction).add_(p.grad, alpha=-lr).add_(noise, alpha=scale)
                p.add_(v)
        return loss
