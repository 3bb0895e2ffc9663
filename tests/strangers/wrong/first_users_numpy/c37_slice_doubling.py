"""Slice sampling of one coordinate after the other, with doubling and shrinking (Neal 2003)."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def slice_coordinate(rng, x, i, width, log_density):
    def at(value):
        y = x.copy()
        y.flat[i] = value
        return log_density(y)

    here = x.flat[i]
    level = at(here) + np.log(1 - rng.random())
    low = here - width * rng.random()
    high = low + width
    for _ in range(8):
        if at(low) < level and at(high) < level:
            break
        if rng.random() < 0.5:
            low -= high - low
        else:
            high += high - low
    while True:
        new = low + rng.random() * (high - low)
        if at(new) > level:
            return new
        low, high = (new, high) if new < here else (low, new)


def step(rng, x, step_size, estimator):
    x = np.array(x, dtype=float)
    log_density = lambda q: -float(estimator.estimate(rng, (), q)[0].potential)
    for i in range(x.size):
        x.flat[i] = slice_coordinate(rng, x, i, np.sqrt(2 * step_size), log_density)
    return x


doubling = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
