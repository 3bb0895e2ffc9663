"""Tamed unadjusted Langevin (Brosse et al. 2019), with a log of the last potentials and a counter for the plots."""

from typing import NamedTuple

import torch

KEEP = 8


class TamedState(NamedTuple):
    position: torch.Tensor
    history: torch.Tensor
    t: int


class TULA:
    backend = "host"

    def init(self, rng, position, estimator):
        x = torch.tensor(position)
        return TamedState(x, torch.zeros(KEEP, dtype=x.dtype), 0)

    def step(self, rng, state, step_size, estimator):
        x, history, t = state
        est = estimator.estimate(rng, (), x.numpy())[0]
        g = torch.as_tensor(est.gradient)
        tamed = g / (1 + step_size * torch.linalg.vector_norm(g))
        noise = torch.from_numpy(rng.standard_normal(tuple(x.shape)))
        new = x - step_size * tamed + (2 * step_size) ** 0.5 * noise

        history = history.clone()
        history[t % KEEP] = float(est.potential)
        return TamedState(new, history, t + 1)
