"""Hit-and-run slice sampling.

A line through the current point is drawn (an axis, or an isotropic direction), and the point is moved along it by Neal's slice sampler with
stepping out and shrinkage. There is nothing to tune beyond the width of the first bracket, and no step size.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def draw_direction(rng, shape, axis_share):
    """A unit vector: one of the axes with probability `axis_share`, else uniform on the sphere."""
    size = int(np.prod(shape))
    if rng.random() < axis_share:
        direction = np.zeros(size)
        direction[rng.integers(size)] = 1.0
    else:
        direction = rng.standard_normal(size)
        direction = direction / np.sqrt(np.sum(direction**2))
    return direction.reshape(shape)


def step_out(rng, inside, width, limit):
    """A bracket around 0 of random place, widened on both sides by at most `limit` - 1 widths in all."""
    left = -width * rng.random()
    right = left + width
    to_left = int(rng.integers(limit))
    to_right = limit - 1 - to_left
    while to_left > 0 and inside(left):
        left -= width
        to_left -= 1
    while to_right > 0 and inside(right):
        right += width
        to_right -= 1
    return left, right


def shrink(rng, inside, left, right):
    """Uniform draws from the bracket, cut at each failure, until one is in the slice."""
    while True:
        t = rng.uniform(left, right)
        if inside(t):
            return t
        if t < 0:
            left = t
        else:
            right = t


def hit_and_run_slice(width=2.0, limit=8, axis_share=0.5):
    """Slice sampling along random lines: `limit` brackets of `width` at most."""
    if width <= 0 or limit < 1:
        raise ValueError("width and limit have to be positive")
    if not 0 <= axis_share <= 1:
        raise ValueError("axis_share is a probability")

    def step(rng, x, step_size, estimator):
        def energy(y):
            return float(estimator.estimate(rng, (), y)[0].potential)

        direction = draw_direction(rng, x.shape, axis_share)
        ceiling = energy(x) + rng.exponential()

        def inside(t):
            return energy(x + t * direction) < ceiling

        left, right = step_out(rng, inside, width, limit)
        return x + shrink(rng, inside, left, right) * direction

    return simple_sampler(step, backend="host", claims=Claims(Source("", "Neal (2003), figures 3 and 5"), ExactLaw()))
