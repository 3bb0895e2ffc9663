"""Relativistic Langevin dynamics (Lu, Perrone, Hasenclever, Teh and Vollmer 2017), separable kinetic energy, in torch.

K(p) = sum_i m c^2 sqrt(1 + p_i^2 / (m c)^2), so that no coordinate is faster than c:
    dx = K'(p) dt,    dp = -grad U dt - D K'(p) dt + sqrt(2 D) dW
"""

from typing import NamedTuple

import torch
from torch import Tensor

from sgmcmc_verification.samplers import simple_sampler

MASS, SPEED_OF_LIGHT, DRAG = 1.0, 1.5, 1.0


class Particle(NamedTuple):
    position: Tensor
    momentum: Tensor


def velocity(p: Tensor) -> Tensor:
    return p / (MASS * torch.sqrt(p**2 / (MASS * SPEED_OF_LIGHT) ** 2 + 1))


def start(rng, position, estimator):
    x = torch.tensor(position)
    return Particle(x, torch.zeros_like(x))


@torch.no_grad()
def sgrhmc_step(rng, state, eps, estimator):
    torch.manual_seed(int(rng.integers(2**63)))
    x, p = state
    gradient = torch.from_numpy(estimator.estimate(rng, (), x.numpy())[0].gradient)
    p = p - eps * gradient - eps * DRAG * velocity(p) + (2 * eps * DRAG) ** 0.5 * torch.randn_like(p)
    return Particle(x + eps * velocity(p), p)


relativistic = simple_sampler(sgrhmc_step, init=start, backend="host")
