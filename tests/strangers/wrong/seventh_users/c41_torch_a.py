"""SGLD on lists of tensors, a metric shared by rows, and SGHMC with a banded friction, as optimisers of torch.

The loss is the mean over num_data data; U = num_data x loss.
"""

import torch
from torch.optim import Optimizer

# --- SGLD with foreach kernels ----------------------------------------------------------------------------------------
#
# w' = w - lr (g + weight_decay w) + N(0, 2 lr / N): tau = s^2 / 2a = 1 / N, temperature 1 of U plus the prior of precision
# N weight_decay. Draws are made in a buffer that is kept, as large as the largest tensor.
#
# WRONG: with foreach=True, the default, the draws of a group are all made before they are used, and all are views of the same
# memory: entry k of every tensor gets the draw that the last one with so many entries has filled in there. Each tensor alone has
# its law; two tensors have dw = -grad U dt + sqrt(2) dB with one B for entries of the same place, D singular: with two
# independent N(0, 1) in two tensors E w1 w2 = 1 for 0. Right with foreach=False, or with one tensor.


class FastSGLD(Optimizer):
    _scratch = None

    def __init__(self, params, lr=1e-3, num_data=1, weight_decay=0.0, foreach=True):
        super().__init__(params, dict(lr=lr, num_data=num_data, weight_decay=weight_decay, foreach=foreach))

    def _noise(self, params):
        sizes = [p.numel() for p in params]
        needed = max(sizes)
        if self._scratch is None or self._scratch.numel() < needed or self._scratch.dtype != params[0].dtype:
            self._scratch = torch.empty(needed, dtype=params[0].dtype, device=params[0].device)
        return [self._scratch[:size].view(p.shape).normal_() for p, size in zip(params, sizes)]

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
# Gamma_i = d_i f, and w' = w - lr (G g - Gamma / N) + N(0, 2 lr G / N).
#
# WRONG: d_i f is taken as f'(m) 2 w_i, without the 1 / n of the mean: it is n Gamma. The flux -G grad U + n grad G - (grad (G rho)) /
# rho vanishes for rho ~ exp(-U) f^(n-1), in a row of n entries: right for n = 1 alone. N(0, I_2), floor 0.2: m ~ Exp(1), E 1/(1+m)
# = 0.596, so that E m = (0.2 + 0.8 0.404) / (0.2 + 0.8 0.596) = 0.77 for 1; further off for longer rows.


class RowSGLD(Optimizer):
    def __init__(self, params, lr=1e-3, num_data=1, floor=0.2):
        if not 0 < floor <= 1:
            raise ValueError("0 < floor <= 1")
        super().__init__(params, dict(lr=lr, num_data=num_data, floor=floor))

    @staticmethod
    def _metric(p, floor):
        square = p * p
        m = square.mean(dim=-1, keepdim=True) if p.dim() else square
        metric = floor + (1 - floor) / (1 + m)
        slope = -(1 - floor) / (1 + m) ** 2
        return metric, slope * 2 * p

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
# A^-1 (2 lr A / N) A^-1 = 2 (lr/N) A^-1. Eigenvalues of A are below friction (1 + |coupling|)^2, which has to be below 2.
#
# WRONG: the noise is made by L' xi, of covariance L' L and not L L' = C, which differ at both ends of the axis: M = L'L - LL' =
# coupling^2 diag(1, 0, .., 0, -1). For U = |w|^2 / 2 the covariance S of w solves C S + S C = 2 L'L; for n = 2, coupling 0.6:
# S = [[1.38, -0.03], [-0.03, 0.75]] in place of 1. Right for axes of length 1 only.


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
                noise = xi + coupling * up(xi)
                v.add_(drag, alpha=-friction).add_(p.grad, alpha=-lr).add_(noise, alpha=scale)
                p.add_(v)
        return loss
