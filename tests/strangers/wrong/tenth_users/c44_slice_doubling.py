"""Coordinate-wise slice sampling with the doubling procedure of Neal (2003), in NumPy.

    level = log pdf(x) - Exp(1)             the slice
    (L, R) from doubling a random interval  figure 4 of the paper
    x' uniform on (L, R), shrunk to x       figure 5
    accepted by the test of doubling        figure 6

The coordinates are updated in a random order; there is no step size, and only `width` sets a scale. Doubling reaches far-off
parts of a slice in a few evaluations, which stepping out does not.
"""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

MAX_SHRINKS = 500


@dataclass(frozen=True)
class SliceDoubling:
    width: float = 1.0
    max_doublings: int = 8

    backend = "host"
    claims = Claims(Source("", "Neal (2003), Slice sampling, figures 4 to 6"), ExactLaw())

    def __post_init__(self):
        if self.width <= 0:
            raise ValueError("width must be positive")
        if self.max_doublings < 1:
            raise ValueError("max_doublings must be at least 1")

    def _doubled(self, rng, x0, level, log_pdf):
        """An interval around x0, doubled to either side until both of its ends are out of the slice."""
        left = x0 - self.width * rng.random()
        right = left + self.width
        inside_left, inside_right = log_pdf(left) > level, log_pdf(right) > level
        for _ in range(self.max_doublings):
            if not (inside_left or inside_right):
                break
            if rng.random() < 0.5:
                left -= right - left
                inside_left = log_pdf(left) > level
            else:
                right += right - left
                inside_right = log_pdf(right) > level
        return left, right

    def _reachable(self, x0, x1, left, right, level, log_pdf):
        """Whether doubling from x1 could have ended with the same interval: halve it, and look where it would have stopped."""
        differ = False
        while right - left > 1.1 * self.width:
            middle = 0.5 * (left + right)
            differ = differ or (x0 < middle) != (x1 < middle)
            if x0 < middle:
                right = middle
            else:
                left = middle
            if differ and log_pdf(left) <= level and log_pdf(right) <= level:
                return False
        return True

    def _update(self, rng, x0, log_pdf):
        level = log_pdf(x0) - rng.exponential()
        outer_left, outer_right = self._doubled(rng, x0, level, log_pdf)
        left, right = outer_left, outer_right
        for _ in range(MAX_SHRINKS):
            x1 = left + (right - left) * rng.random()
            if log_pdf(x1) > level and self._reachable(x0, x1, outer_left, outer_right, level, log_pdf):
                return x1
            if x1 < x0:
                left = x1
            else:
                right = x1
        return x0

    def step(self, rng, position, step_size, estimator):
        x = np.array(position, dtype=float)
        flat = x.reshape(-1)

        def conditional(i):
            def log_pdf(value):
                kept, flat[i] = flat[i], value
                result = -float(estimator.estimate(rng, (), x)[0].potential)
                flat[i] = kept
                return result

            return log_pdf

        for i in rng.permutation(flat.size):
            flat[i] = self._update(rng, float(flat[i]), conditional(i))
        return x
