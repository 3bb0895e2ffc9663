"""Langevin dynamics in a position-dependent metric, with kinetic noise instead of a divergence.

The metric is G(x) = 1 + a x x^T, so that D = G^-1 = 1 - a x x^T / s and D^(1/2) = 1 - a x x^T / (s + sqrt s), s = 1 + a |x|^2.
Hutter and Ottinger (1998): the noise is mapped by (1 + D(x + noise) G(x)) / 2, whose mean supplies the drift T div D that the
invariant law exp(-U / T) needs; no derivative of the metric is taken.
"""

from dataclasses import dataclass

import torch

from sgmcmc_verification.samplers import simple_sampler


@dataclass
class Walk:
    theta: torch.Tensor
    steps: int = 0


class RankOneMetric:
    """Products with G, D and the root of D at a point, without a matrix."""

    def __init__(self, x, strength):
        self.x = x
        self.strength = strength
        self.s = 1 + strength * torch.sum(x * x)

    def _add(self, factor, v):
        return v + factor * torch.sum(self.x * v) * self.x

    def metric(self, v):
        return self._add(self.strength, v)

    def inverse(self, v):
        return self._add(-self.strength / self.s, v)

    def inverse_root(self, v):
        return self._add(-self.strength / (self.s + torch.sqrt(self.s)), v)


def kinetic_langevin(strength=0.5, temperature=1.0):
    if strength <= 0 or temperature <= 0:
        raise ValueError("strength and temperature are positive")

    def init(rng, position, estimator):
        return Walk(torch.tensor(position))

    @torch.no_grad()
    def step(rng, walk, h, estimator):
        generator = torch.Generator().manual_seed(int(rng.integers(2**63)))
        x = walk.theta
        slope = torch.as_tensor(estimator.estimate(rng, (), x.numpy())[0].gradient)
        here = RankOneMetric(x, strength)
        normal = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        noise = (2 * h * temperature) ** 0.5 * here.inverse_root(normal)
        there = RankOneMetric(x + noise, strength)
        moved = x - h * here.inverse(slope) + (noise + there.inverse(here.metric(noise))) / 2
        return Walk(moved, walk.steps + 1)

    return simple_sampler(step, init=init, position=lambda walk: walk.theta, backend="host")
