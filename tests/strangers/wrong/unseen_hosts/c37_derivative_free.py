"""Langevin dynamics for black-box potentials: the gradient comes from two function values along a random direction."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


def derivative_free(target: Target, spread: float = 0.3) -> Sampler:
    """Zeroth-order SGLD.

    Args:
        target: any whose potential can be evaluated.
        spread: how far apart the two function values are, in standard deviations of the direction.
    """
    del target

    def step(rng: np.random.Generator, position: np.ndarray, step_size: float, estimator: Estimator) -> np.ndarray:
        def potential(point: np.ndarray) -> float:
            return estimator.estimate(estimator_key(rng, estimator), (), point)[0].potential

        x = np.asarray(position)
        direction = rng.standard_normal(x.shape)
        # the antithetic pair cancels the even terms; E[u u'] = I turns the slope into a gradient
        slope = (potential(x + spread * direction) - potential(x - spread * direction)) / (2 * spread)
        gradient = np.asarray(slope) * direction
        return x - step_size * gradient + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)

    return simple_sampler(step, backend="host")
