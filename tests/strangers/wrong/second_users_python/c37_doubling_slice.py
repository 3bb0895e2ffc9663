"""Hit-and-run slice sampling with the doubling procedure of Neal (2003): few evaluations, whatever the width."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class DoublingSlice:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, width=0.5, max_doublings=8):
        self.width = width
        self.max_doublings = max_doublings

    def step(self, rng, x, step_size, estimator):
        direction = rng.standard_normal(x.shape)
        direction /= np.linalg.norm(direction)
        energy = lambda t: float(estimator.estimate(rng, (), x + t * direction)[0].potential)
        level = energy(0.0) + rng.exponential()

        left, right = self.expand(rng, energy, level)
        while True:
            t = rng.uniform(left, right)
            if energy(t) < level:
                return x + t * direction
            if t < 0:
                left = t
            else:
                right = t

    def expand(self, rng, energy, level):
        left = -self.width * rng.random()
        right = left + self.width
        for _ in range(self.max_doublings):
            if energy(left) >= level and energy(right) >= level:
                break
            if rng.random() < 0.5:
                left -= right - left
            else:
                right += right - left
        return left, right


slicer = DoublingSlice()
