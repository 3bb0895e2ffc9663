"""Slice sampling of one coordinate at a time, with doubling of the interval (Neal, Annals of Statistics 2003, section 4).

Doubling finds the ends of wide slices in few evaluations, so that `width` need only be right within some orders of magnitude. There is no
step size and no gradient: each sweep updates all coordinates in turn.
"""

from dataclasses import dataclass

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass(frozen=True)
class DoublingSlice:
    """`width` is the first guess of the length of a slice; it is doubled at most `max_doublings` times."""

    width: float = 1.0
    max_doublings: int = 8

    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw())

    def __post_init__(self):
        if self.width <= 0 or self.max_doublings < 1:
            raise ValueError("width and max_doublings are positive")

    def step(self, rng, x, step_size, estimator):
        def potential(point):
            return float(estimator.estimate(rng, (), point.reshape(x.shape))[0].potential)

        point = np.array(x).reshape(-1)
        energy = potential(point)
        for i in range(point.size):
            point, energy = self._update(rng, potential, point, energy, i)
        return point.reshape(x.shape)

    def _update(self, rng, potential, point, energy, i):
        def along(value):
            other = point.copy()
            other[i] = value
            return other, potential(other)

        height = energy + rng.exponential()
        left, right = self._interval(rng, point[i], height, lambda value: along(value)[1])
        while True:
            value = left + (right - left) * rng.random()
            other, other_energy = along(value)
            if other_energy < height:
                return other, other_energy
            if value < point[i]:
                left = value
            else:
                right = value

    def _interval(self, rng, start, height, energy_at):
        """An interval around `start`, doubled to a side that a coin chooses until both of its ends are outside of the slice."""
        left = start - self.width * rng.random()
        right = left + self.width
        below_left, below_right = energy_at(left) < height, energy_at(right) < height
        for _ in range(self.max_doublings):
            if not (below_left or below_right):
                break
            if rng.random() < 0.5:
                left -= right - left
                below_left = energy_at(left) < height
            else:
                right += right - left
                below_right = energy_at(right) < height
        return left, right
