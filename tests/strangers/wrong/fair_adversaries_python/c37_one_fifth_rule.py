"""Metropolis whose scale follows the 1/5 success rule of evolution strategies, so that nothing has to be tuned."""

from dataclasses import dataclass, replace

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass
class Walker:
    position: np.ndarray
    scale: np.ndarray


class OneFifth:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, growth=1.5):
        self.growth = growth

    def init(self, rng, position, estimator):
        return Walker(np.array(position), np.asarray(1.0))

    def step(self, rng, walker, step_size, estimator):
        x = walker.position
        y = x + walker.scale * rng.standard_normal(x.shape)
        u_x = estimator.estimate(rng, (), x)[0].potential
        u_y = estimator.estimate(rng, (), y)[0].potential
        if np.log(rng.random()) < u_x - u_y:
            return Walker(y, walker.scale * self.growth)
        return replace(walker, scale=walker.scale * self.growth**-0.25)
