"""BAOAB splitting of underdamped Langevin dynamics on trees of torch tensors.

Kick, drift, Ornstein-Uhlenbeck, drift, kick; the force of the last kick is kept for the first one of the next step, so that a step costs one
gradient. Positions are unbiased to second order in the step.
"""

import math

import numpy as np
import torch
from torch.utils._pytree import tree_map

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


def to_torch(tree):
    return tree_map(lambda a: torch.tensor(np.asarray(a)), tree)


def to_numpy(tree):
    return tree_map(lambda t: t.numpy(), tree)


class BAOABTrees:
    """Langevin dynamics at a temperature: dx = v dt, dv = -grad U dt - friction v dt + sqrt(2 friction T) dW, with unit masses."""

    backend = "host"

    def __init__(self, friction=1.0, temperature=1.0):
        if friction <= 0:
            raise ValueError("friction must be positive")
        if temperature <= 0:
            raise ValueError("temperature must be positive")
        self.friction = friction
        self.temperature = temperature

    @property
    def claims(self):
        return Claims(Source("leimkuhler2013rational", "BAOAB"), StationaryLaw(order=2, temperature=self.temperature))

    def _force(self, rng, x, estimator):
        gradient = estimator.estimate(rng, (), to_numpy(x))[0].gradient
        return tree_map(lambda g: -torch.from_numpy(np.array(g)), gradient)

    @torch.no_grad()
    def init(self, rng, position, estimator):
        torch.manual_seed(int(rng.integers(2**63)))
        x = to_torch(position)
        v = tree_map(lambda t: math.sqrt(self.temperature) * torch.randn_like(t), x)
        return {"position": x, "velocity": v, "force": self._force(rng, x, estimator)}

    @torch.no_grad()
    def step(self, rng, state, h, estimator):
        torch.manual_seed(int(rng.integers(2**63)))
        x, v, force = state["position"], state["velocity"], state["force"]
        kept = math.exp(-self.friction * h)
        fresh = math.sqrt(self.temperature * (1.0 - kept * kept))
        kick = lambda v, f: v + 0.5 * h * f
        drift = lambda x, v: x + 0.5 * h * v
        v = tree_map(kick, v, force)
        x = tree_map(drift, x, v)
        v = tree_map(lambda v: kept * v + fresh * torch.randn_like(v), v)
        x = tree_map(drift, x, v)
        force = self._force(rng, x, estimator)
        v = tree_map(kick, v, force)
        return {"position": x, "velocity": v, "force": force}
