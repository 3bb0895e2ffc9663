"""Riemannian Langevin dynamics in torch with a diagonal metric, whose divergence is left to autograd."""

import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


def diffusion(x: torch.Tensor) -> torch.Tensor:
    """Diagonal of D(x), which makes steps shorter far out.

    Scales are no parameters to be trained: the graph does not go through them.
    """
    square = x.detach().square()
    return 1.0 / (1.0 + square)


def step(rng: np.random.Generator, position: np.ndarray, step_size: float, estimator: Estimator) -> np.ndarray:
    """x' = x - h D grad U + h div D + sqrt(2 h D) xi."""
    shape, h = np.shape(position), float(step_size)
    x = torch.from_numpy(np.array(position)).reshape(-1)
    estimate = estimator.estimate(estimator_key(rng, estimator), (), np.asarray(position))[0]
    gradient = torch.from_numpy(np.array(estimate.gradient)).reshape(-1).to(x.dtype)
    noise = torch.from_numpy(rng.standard_normal(x.numel())).to(x.dtype)

    scale = diffusion(x)
    divergence = torch.autograd.functional.jacobian(diffusion, x).diagonal()
    moved = x - h * scale * gradient + h * divergence + (2 * h * scale).sqrt() * noise
    return moved.reshape(shape).numpy().copy()


riemannian = simple_sampler(step, backend="host")
