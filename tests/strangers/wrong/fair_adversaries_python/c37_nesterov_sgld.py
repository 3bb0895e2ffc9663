"""SGLD with the momentum of torch.optim.SGD, plain or Nesterov."""

from typing import NamedTuple

import torch

from sgmcmc_verification.samplers import simple_sampler


class Parameters(NamedTuple):
    position: torch.Tensor
    buffer: torch.Tensor


def start(rng, position, estimator):
    position = torch.tensor(position)
    return Parameters(position, torch.zeros_like(position))


def momentum_sgld(target, momentum=0.9, nesterov=False):
    """The learning rate is scaled by 1 - momentum, so that a gradient moves by h in all."""

    @torch.no_grad()
    def step(rng, state, h, estimator):
        theta, buf = state
        torch.manual_seed(int(rng.integers(2**63)))
        grad = torch.from_numpy(estimator.estimate(rng, (), theta.numpy())[0].gradient)
        noise = (2 / h) ** 0.5 * torch.randn_like(theta)

        buf = momentum * buf + grad + noise
        if nesterov:
            update = grad + momentum * buf
        else:
            update = buf
        return Parameters(theta - h * (1 - momentum) * update, buf)

    return simple_sampler(step, init=start, backend="host")
