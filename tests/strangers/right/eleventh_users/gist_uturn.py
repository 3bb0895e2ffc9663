"""HMC that tunes its own path length: integrate to a U-turn, go back to a uniform point of the path, correct for the way back.

Gibbs self-tuning in the sense of Bou-Rabee, Carpenter and Marsden (2024). The number of leapfrog steps L is uniform on
{low(M), .., M}, where M is the number of steps to the first U-turn; it is one more variable, refreshed in each transition, and
the acceptance has the ratio of its probabilities from both ends of the path. A chain carries its own generator.
"""

from math import ceil

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


class Chain:
    """Where a chain is, what is known there, and its own stream of random numbers."""

    def __init__(self, rng, position, potential, gradient):
        self.rng = rng
        self.position = position
        self.potential = potential
        self.gradient = gradient
        self.moves = 0


def evaluate(rng, estimator, x):
    estimate = estimator.estimate(rng, (), x)[0]
    return float(estimate.potential), np.asarray(estimate.gradient)


def orbit(rng, estimator, x, p, gradient, step, limit):
    """Points of the leapfrog path from (x, p), up to and with the first at which the distance from x shrinks."""
    points, q = [], x
    while len(points) < limit:
        p = p - step / 2 * gradient
        q = q + step * p
        potential, gradient = evaluate(rng, estimator, q)
        p = p - step / 2 * gradient
        points.append((q, p, potential, gradient))
        if not np.isfinite(potential) or np.vdot(q - x, p) < 0:
            break
    return points


def uturn_hmc(limit=16, fraction=0.3, jitter=0.1):
    """`fraction` is the shortest share of a path that may be taken, `jitter` the relative spread of the leapfrog step."""
    if limit < 1:
        raise ValueError("a path has one step at least")
    if not 0 <= fraction <= 1:
        raise ValueError("fraction is between 0 and 1")
    if not 0 <= jitter < 1:
        raise ValueError("jitter is between 0 and 1")

    def choices(length):
        return range(max(1, ceil(fraction * length)), length + 1)

    def init(rng, position, estimator):
        own = rng.spawn(1)[0]
        x = np.array(position)
        return Chain(own, x, *evaluate(own, estimator, x))

    def step(key, chain, step_size, estimator):
        rng = chain.rng
        x = chain.position
        length = step_size * (1 + jitter * rng.uniform(-1, 1))
        p = rng.standard_normal(x.shape)
        start = chain.potential + np.vdot(p, p) / 2

        there = orbit(rng, estimator, x, p, chain.gradient, length, limit)
        span = choices(len(there))
        taken = span[rng.integers(len(span))]
        y, p, potential, gradient = there[taken - 1]
        threshold = rng.exponential()
        if not np.isfinite(potential):
            return chain

        back = orbit(rng, estimator, y, -p, gradient, length, limit)
        span_back = choices(len(back))
        if taken not in span_back:
            return chain
        log_ratio = start - potential - np.vdot(p, p) / 2 + np.log(len(span)) - np.log(len(span_back))
        if -log_ratio < threshold:
            chain.position, chain.potential, chain.gradient = y, potential, gradient
            chain.moves += 1
        return chain

    claims = Claims(Source("", "Bou-Rabee, Carpenter and Marsden 2024"), ExactLaw())
    return simple_sampler(
        step, init=init, position=lambda chain: chain.position, backend="host", claims=claims
    )
