"""Random-walk Metropolis on the simplex, in unconstrained coordinates by stick breaking.

    v_k = x_k / (1 - x_1 - ... - x_{k-1}),   y_k = logit v_k,   k = 1, ..., K - 1,

A piece v_k of what is left of a stick of length one is broken off each time.  The walk is a Gaussian one in y, and the
test compares densities in y.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

SMALLEST = 1e-300


def left_of_stick(x):
    """What is left before each of the first K - 1 breaks, summed from the end, where it is small."""
    return np.cumsum(x[::-1])[::-1][:-1]


def to_line(x):
    left = left_of_stick(x)
    rest = np.maximum(left - x[:-1], SMALLEST)
    return np.log(np.maximum(x[:-1], SMALLEST)) - np.log(rest)


def from_line(y):
    piece, rest = 1 / (1 + np.exp(-y)), 1 / (1 + np.exp(y))
    left = np.concatenate([[1.0], np.cumprod(rest)])
    x = np.append(piece, 1.0) * left
    return x / x.sum()


def log_volume(y):
    """log |dx / dy|: each logistic map has the derivative v (1 - v), and the matrix is triangular."""
    return -np.sum(np.logaddexp(0, y) + np.logaddexp(0, -y))


def stick_breaking_walk(scale=1.0):
    def log_density(rng, y, x, estimator):
        return log_volume(y) - float(estimator.estimate(rng, (), x)[0].potential)

    def step(rng, x, step_size, estimator):
        y = to_line(x)
        proposal = y + scale * np.sqrt(2 * step_size) * rng.standard_normal(y.shape)
        x_new = from_line(proposal)
        log_ratio = log_density(rng, proposal, x_new, estimator) - log_density(rng, y, x, estimator)
        return x_new if np.log(rng.random()) < log_ratio else x

    claims = Claims(Source("", "Betancourt 2012, stick breaking"), ExactLaw(), spaces=("simplex",))
    return simple_sampler(step, claims=claims, backend="host")
