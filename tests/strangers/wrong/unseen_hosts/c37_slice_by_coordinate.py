"""Slice sampling, one coordinate after the other, with shrinkage and without stepping out."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.types import Estimator


def step(rng: np.random.Generator, position: np.ndarray, step_size: float, estimator: Estimator) -> np.ndarray:
    """One sweep over all coordinates."""

    def energy(x: np.ndarray) -> float:
        return float(estimator.estimate(estimator_key(rng, estimator), (), x)[0].potential)

    x = np.array(position)
    # a uniform move in an interval of this width has the variance 2 h of a Langevin step
    width = np.sqrt(24 * step_size)
    for index in np.ndindex(x.shape):
        level = energy(x) + rng.exponential()
        left = x[index] - width / 2
        right = x[index] + width / 2
        proposal = x.copy()
        while True:
            proposal[index] = rng.uniform(left, right)
            if energy(proposal) <= level:
                break
            # shrink the interval towards the current point
            if proposal[index] < x[index]:
                left = proposal[index]
            else:
                right = proposal[index]
        x = proposal
    return x


sampler = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
