"""Metropolis on the unit sphere: follow a great circle in a random tangent direction, accept with exp(-dU)."""

import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def exp_map(x, v):
    length = v.norm()
    return torch.cos(length) * x + torch.sin(length) * v / length


def sphere_walk(rng, x, step_size, estimator):
    gen = torch.Generator()
    gen.manual_seed(int(rng.integers(2**62)))

    def potential(y):
        return float(estimator.estimate(rng, (), y.numpy())[0].potential)

    xi = torch.randn(x.shape, generator=gen, dtype=x.dtype)
    v = (2 * step_size) ** 0.5 * (xi - torch.dot(xi, x) * x)
    y = exp_map(x, v)
    y = y / y.norm()
    u = torch.rand((), generator=gen, dtype=x.dtype)
    return y if torch.log(u) < potential(x) - potential(y) else x


sphere = simple_sampler(
    sphere_walk,
    init=lambda rng, position, estimator: torch.tensor(position),
    backend="host",
    claims=Claims(Source("", "own"), ExactLaw(), spaces=("sphere",)),
)
