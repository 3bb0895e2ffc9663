"""Hamiltonian Monte Carlo in torch, with in-place leapfrog updates that allocate nothing."""

import numpy as np
import torch

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


def hmc(target: Target, leapfrog_steps: int = 3) -> Sampler:
    """HMC with unit mass; a leapfrog step has the length sqrt(2 h)."""
    del target

    def step(rng: np.random.Generator, position: np.ndarray, step_size: float, estimator: Estimator) -> np.ndarray:
        def evaluate(q: torch.Tensor) -> tuple[float, torch.Tensor]:
            estimate = estimator.estimate(estimator_key(rng, estimator), (), q.numpy().copy())[0]
            return float(estimate.potential), torch.from_numpy(np.array(estimate.gradient)).to(q.dtype)

        epsilon = float(2 * step_size) ** 0.5
        start = torch.from_numpy(np.array(position))
        q = start.detach()
        p = torch.from_numpy(np.asarray(rng.standard_normal(tuple(q.shape)))).to(q.dtype)

        potential, gradient = evaluate(q)
        before = potential + 0.5 * float(p.square().sum())
        for _ in range(leapfrog_steps):
            p.add_(gradient, alpha=-epsilon / 2)
            q.add_(p, alpha=epsilon)
            potential, gradient = evaluate(q)
            p.add_(gradient, alpha=-epsilon / 2)
        after = potential + 0.5 * float(p.square().sum())

        accepted = np.log(rng.random()) < before - after
        return (q if accepted else start).numpy().copy()

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
