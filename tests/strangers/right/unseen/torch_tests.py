"""Two Metropolis kernels in torch: random numbers of torch, from a generator that is seeded by the caller's."""

import numpy as np
import torch

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def _seen(oracle, rng, x):
    found = oracle.estimate(rng, (), x.numpy().copy())[0]
    return torch.tensor(np.asarray(found.potential)), torch.tensor(np.asarray(found.gradient))


@torch.no_grad()
def _glauber(rng, position, h, oracle):
    """Uniform moves, accepted with Glauber's (Barker's) probability 1 / (1 + exp(U(y) - U(x)))."""
    g = torch.Generator().manual_seed(int(rng.integers(2**31)))
    x = torch.tensor(np.asarray(position))
    y = x + (24 * float(h)) ** 0.5 * (torch.rand(x.shape, generator=g, dtype=x.dtype) - 0.5)
    rise = _seen(oracle, rng, y)[0] - _seen(oracle, rng, x)[0]
    moved = torch.rand((), generator=g, dtype=x.dtype) < torch.special.expit(-rise)
    return torch.where(moved, y, x).numpy()


@torch.no_grad()
def _tamed(rng, position, h, oracle):
    """MALA with the drift g / (1 + h |g|) in proposal and density; a log ratio that is NaN rejects."""
    h = float(h)
    x = torch.tensor(np.asarray(position))
    noise = torch.tensor(rng.standard_normal(x.shape), dtype=x.dtype)

    def look(a):
        u, g = _seen(oracle, rng, a)
        return u, a - h * g / (1 + h * torch.linalg.vector_norm(g))

    u_x, mean_x = look(x)
    y = mean_x + (2 * h) ** 0.5 * noise
    u_y, mean_y = look(y)
    log_ratio = u_x - u_y + ((y - mean_x).square().sum() - (x - mean_y).square().sum()) / (4 * h)
    log_ratio = torch.where(torch.isnan(log_ratio), torch.full_like(log_ratio, -torch.inf), log_ratio)
    return (y if np.log1p(-rng.random()) < log_ratio.item() else x).numpy()


claims = Claims(Source("", "own"), ExactLaw())
glauber = simple_sampler(_glauber, claims=claims, backend="host")
tamed_torch = simple_sampler(_tamed, claims=claims, backend="host")
