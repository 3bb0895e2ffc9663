"""SGLD with a fixed full-matrix preconditioner, M_ij = rho^|i - j|, for parameters that are ordered in time or space."""

import functools

import torch

from sgmcmc_verification.samplers import simple_sampler


@functools.lru_cache(maxsize=16)
def preconditioner(size, rho):
    lag = torch.arange(size, dtype=torch.float64)
    M = rho ** (lag[:, None] - lag[None, :]).abs()
    return M, torch.linalg.cholesky(M)


def preconditioned(rho=0.5):
    def step(rng, theta, h, estimator):
        torch.manual_seed(int(rng.integers(2**63)))
        M, L = preconditioner(theta.numel(), rho)
        gradient = torch.as_tensor(estimator.estimate(rng, (), theta.numpy())[0].gradient).reshape(-1)
        z = torch.randn(theta.numel(), dtype=torch.float64)
        move = -h * gradient @ M + (2 * h) ** 0.5 * z @ L
        return theta + move.reshape(theta.shape)

    return simple_sampler(step, init=lambda rng, x, estimator: torch.tensor(x), backend="host")


sampler = preconditioned()
