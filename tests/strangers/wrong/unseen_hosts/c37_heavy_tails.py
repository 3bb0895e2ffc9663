"""Langevin dynamics with heavy-tailed increments, which leave a narrow basin sooner than normal ones."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


def heavy_tails(target: Target, degrees: float = 20.0) -> Sampler:
    """x' = x - h grad U(x) + sqrt(2 h) t, with t of Student's law with `degrees` degrees of freedom."""
    del target

    def step(rng: np.random.Generator, position: np.ndarray, step_size: float, estimator: Estimator) -> np.ndarray:
        x = np.asarray(position)
        gradient = np.asarray(estimator.estimate(estimator_key(rng, estimator), (), x)[0].gradient)
        noise = rng.standard_t(degrees, size=x.shape)
        return (x - step_size * gradient + np.sqrt(2 * step_size) * noise).astype(x.dtype)

    return simple_sampler(step, backend="host")
