"""Affine-invariant interacting Langevin dynamics: walkers precondition each other with their covariance.

The term c (x_i - m) / N makes the law of N walkers right at finite N.
"""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler


def init(rng, position, estimator):
    x = np.asarray(position, dtype=float)
    n = x.size + 4
    return {"walkers": x + rng.standard_normal((n,) + x.shape)}


def step(rng, state, h, estimator):
    walkers = state["walkers"]
    n, shape = len(walkers), walkers.shape
    gradients = np.stack([estimator.estimate(rng, (), w)[0].gradient for w in walkers]).reshape(n, -1)
    x = walkers.reshape(n, -1)

    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / n
    root = centred / np.sqrt(n)  # root.T @ root is the covariance

    drift = -gradients @ covariance + 2.0 * centred / n
    noise = rng.standard_normal((n, n)) @ root
    x = x + h * drift + np.sqrt(2 * h) * noise
    return {"walkers": x.reshape(shape)}


aldi = simple_sampler(step, init=init, position=lambda state: state["walkers"][0], backend="host")
