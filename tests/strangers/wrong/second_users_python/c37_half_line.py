"""Underdamped Langevin dynamics for positive parameters, mirrored at zero."""

import math

import torch

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler


def start(rng, position, estimator):
    x = torch.tensor(position)
    torch.manual_seed(int(rng.integers(2**63)))
    return {"position": x, "momentum": torch.randn_like(x)}


@torch.no_grad()
def mirrored(rng, state, h, estimator):
    torch.manual_seed(int(rng.integers(2**63)))
    h = float(h)
    x, p = state["position"].clone(), state["momentum"].clone()
    gradient = torch.from_numpy(estimator.estimate(rng, (), x.numpy())[0].gradient)
    decay = math.exp(-h)
    p.sub_(gradient, alpha=h).mul_(decay).add_(torch.randn_like(p), alpha=math.sqrt(1 - decay**2))
    x.add_(p, alpha=h).abs_()
    return {"position": x, "momentum": p}


positive = simple_sampler(
    mirrored,
    init=start,
    backend="host",
    claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",)),
)
