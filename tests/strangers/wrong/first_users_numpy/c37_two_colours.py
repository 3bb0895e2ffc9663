"""Chequerboard Gibbs: all even sites at once, then all odd ones."""

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def draw_all(rng, x, estimator):
    """Of each site, a value given all others."""
    g = np.asarray(estimator.estimate(rng, (), x)[0].gradient, float)
    u = rng.random(x.size)
    if g.ndim == 1:
        return np.where(u < 1 / (1 + np.exp(2 * g)), 1, -1)
    p = np.exp(-(g - g.min(axis=1, keepdims=True)))
    below = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    return np.sum(u[:, None] > below, axis=1)


def step(rng, x, step_size, estimator):
    x = np.array(x)
    for colour in (0, 1):
        x[colour::2] = draw_all(rng, x, estimator)[colour::2]
    return x


chequers = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("finite",)), backend="host")
