"""Irreversible Langevin: -(I + J) grad U with a constant skew-symmetric J (Duncan, Lelievre and Pavliotis 2016), in torch.

J is the circulant matrix with strength on the first superdiagonal and -strength on the first subdiagonal, and grad U is
only ever multiplied by it through two rolls. In one and two dimensions J is zero.
"""

from dataclasses import dataclass

import torch


@dataclass
class IrreversibleLangevin:
    strength: float = 1.0

    backend = "host"

    def init(self, rng, position, estimator):
        return torch.tensor(position)

    def swirl(self, g):
        flat = g.flatten()
        return self.strength * (flat.roll(-1) - flat.roll(1)).reshape(g.shape)

    @torch.no_grad()
    def step(self, rng, theta, step_size, estimator):
        generator = torch.Generator()
        generator.manual_seed(int(rng.integers(2**63)))
        g = torch.from_numpy(estimator.estimate(rng, (), theta.numpy())[0].gradient)
        drift = -(g + self.swirl(g))
        noise = torch.empty_like(theta).normal_(generator=generator)
        return theta.add(drift, alpha=step_size).add(noise, alpha=(2 * step_size) ** 0.5)
