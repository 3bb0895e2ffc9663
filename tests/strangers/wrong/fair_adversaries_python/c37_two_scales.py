"""Metropolis with a small and a large scale. Far from the origin the large one is taken more often, to come back sooner."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class TwoScaleWalk:
    def __init__(self, ratio=4.0):
        self.ratio = ratio

    def probability_of_large(self, x):
        r2 = np.mean(x * x)
        return r2 / (1.0 + r2)

    def __call__(self, rng, x, step_size, estimator):
        scale = np.sqrt(2 * step_size)
        if rng.random() < self.probability_of_large(x):
            scale = self.ratio * scale
        y = x + scale * rng.standard_normal(x.shape)
        u = [estimator.estimate(rng, (), q)[0].potential for q in (x, y)]
        return y if np.log(rng.random()) < u[0] - u[1] else x


def two_scales(target, ratio=4.0):
    return simple_sampler(TwoScaleWalk(ratio), backend="host", claims=Claims(Source("", "own"), ExactLaw()))
