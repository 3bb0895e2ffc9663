"""Hit-and-run slice sampler: a random direction, Neal's (2003) stepping-out and shrinkage along it.

    height  log y = -U(x) - E,  E ~ Exp(1);   direction e uniform on the sphere
    interval (t0 - R w, t0 + (1 - R) w), stepped out by w at both ends until outside of the slice, at most m times, the limit
    being split at random between the ends;  t uniform in it, shrunk towards 0 after each miss

Right: given the direction (drawn independently of x) and the height, stepping-out and shrinkage are reversible for the uniform
law on the slice along the line (Neal 2003, section 4.3).  No step size.  Exact.        Object: HitAndRunSlice
"""
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Walker:
    """Where the chain is."""

    def __init__(self, position):
        self.position = np.array(position, dtype=float)


class HitAndRunSlice:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __init__(self, width=1.5, max_steps_out=8):
        if width <= 0 or max_steps_out < 1:
            raise ValueError("width > 0, max_steps_out >= 1")
        self.width = width
        self.limit = max_steps_out

    def init(self, rng, position, estimator):
        return Walker(position)

    def step(self, rng, state, step_size, estimator):
        x = state.position
        direction = rng.standard_normal(x.shape)
        direction /= np.sqrt(np.sum(direction**2))

        def log_density(t):
            return -float(estimator.estimate(rng, (), x + t * direction)[0].potential)

        height = log_density(0.0) - rng.standard_exponential()
        left = -self.width * rng.random()
        right = left + self.width
        steps_left = int(np.floor(self.limit * rng.random()))
        steps_right = self.limit - 1 - steps_left
        while steps_left > 0 and log_density(left) > height:
            left -= self.width
            steps_left -= 1
        while steps_right > 0 and log_density(right) > height:
            right += self.width
            steps_right -= 1
        while True:
            t = left + (right - left) * rng.random()
            if log_density(t) > height:
                break
            if t < 0:
                left = t
            else:
                right = t
        return Walker(x + t * direction)
