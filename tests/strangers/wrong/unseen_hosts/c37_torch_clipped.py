"""SGLD with torch's own SGD: the noise is a part of the gradient, and gradients are clipped as in training."""

import numpy as np
import torch

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


def clipped(target: Target, max_norm: float = 100.0) -> Sampler:
    """Langevin dynamics by `torch.optim.SGD`.

    Args:
        target: any.
        max_norm: largest norm of what the optimiser is given, a guard against exploding gradients.
    """
    del target

    def step(rng: np.random.Generator, position: np.ndarray, step_size: float, estimator: Estimator) -> np.ndarray:
        parameter = torch.nn.Parameter(torch.from_numpy(np.array(position)))
        optimizer = torch.optim.SGD([parameter], lr=float(step_size))
        gradient = estimator.estimate(estimator_key(rng, estimator), (), np.asarray(position))[0].gradient
        parameter.grad = torch.from_numpy(np.array(gradient)).to(parameter.dtype)
        # the optimiser multiplies by the learning rate: sqrt(2 / lr) here is sqrt(2 lr) in the parameter
        noise = torch.from_numpy(np.asarray(rng.standard_normal(parameter.shape))).to(parameter.dtype)
        parameter.grad.add_(noise, alpha=(2 / float(step_size)) ** 0.5)
        torch.nn.utils.clip_grad_norm_([parameter], max_norm)
        optimizer.step()
        return parameter.detach().numpy().copy()

    return simple_sampler(step, backend="host")
