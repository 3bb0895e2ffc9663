"""Slice sampling of one coordinate at a time, with intervals that double (Neal 2003, section 4).

A coordinate is drawn at random. Under a level that is uniform below the density an interval of a given width is laid
at random around the point, and doubled, to a random side, until both of its ends are outside of the slice. Points are
drawn from it, and the interval shrinks to those that are outside. There is no step size: `width` is a guess at the
scale of a coordinate, and a wrong one costs evaluations only, by the logarithm of what it is wrong by.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def doubled(rng, outside, x, width, max_doublings):
    """An interval around x whose ends are both outside of the slice."""
    left = x - width * rng.random()
    right = left + width
    for _ in range(max_doublings):
        if outside(left) and outside(right):
            break
        if rng.random() < 0.5:
            left -= right - left
        else:
            right += right - left
    return left, right


def shrunk(rng, outside, x, left, right):
    """A point of the slice within an interval that contains x, which is in the slice."""
    while True:
        y = left + (right - left) * rng.random()
        if not outside(y):
            return y
        if y < x:
            left = y
        else:
            right = y


def slice_sampler(width=1.0, max_doublings=6):
    """The sampler: `width` of the first interval, and how often it may double."""
    if width <= 0:
        raise ValueError("width is positive")
    if max_doublings < 1:
        raise ValueError("max_doublings is at least 1")

    def step(rng, position, step_size, estimator):
        x = np.array(position)
        i = np.unravel_index(int(rng.integers(x.size)), x.shape)

        def energy(value):
            y = x.copy()
            y[i] = value
            return float(estimator.estimate(rng, (), y)[0].potential)

        level = energy(x[i]) + rng.exponential()
        outside = lambda value: energy(value) >= level
        left, right = doubled(rng, outside, x[i], width, max_doublings)
        x[i] = shrunk(rng, outside, x[i], left, right)
        return x

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
