"""Hit-and-run slice sampling: stepping out and shrinkage (Neal 2003) along a uniform direction (convergence: Rudolf and Ullrich 2018)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

WIDTH = 2.0


def direction(rng, shape):
    n = rng.standard_normal(shape)
    return n / np.linalg.norm(n)


def bracket(rng, inside):
    left = -WIDTH * rng.random()
    right = left + WIDTH
    while inside(left):
        left -= WIDTH
    while inside(right):
        right += WIDTH
    return left, right


def step(rng, x, step_size, estimator):
    def log_density(point):
        return -estimator.estimate(rng, (), point)[0].potential

    line = direction(rng, x.shape)
    level = log_density(x) - rng.exponential()
    inside = lambda t: log_density(x + t * line) > level

    left, right = bracket(rng, inside)
    while True:
        t = rng.uniform(left, right)
        if inside(t):
            return x + t * line
        if t < 0:
            left = t
        else:
            right = t


slice_sampler = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
