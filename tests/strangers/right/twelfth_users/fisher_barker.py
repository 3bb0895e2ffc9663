"""Unadjusted Barker dynamics in the coordinates of a frozen Fisher preconditioner.

A pilot run (a tamed Langevin chain from a standard normal point, which knows nothing of where the chain will start) collects outer products
of gradients, whose mean estimates the Fisher information I. With L L^T = I^-1, scaled to a mean diagonal of one and fixed from then on, a step is

    x' = x + L (b * z),    P(b_i = 1) = 1 / (1 + exp(z_i (L^T grad U)_i))

with increments z_i = sqrt(2 h) * (+-sqrt(1 - spread^2) + spread * normal): the two-humped noise of Vogrinc, Livingstone and Zanella (2022),
symmetric and of variance 2 h.
"""

import numpy as np

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw, simple_sampler

PILOT_STEP = 0.02
RIDGE = 0.5


def pilot_factor(rng, shape, estimator, length):
    """L with L L^T proportional to the inverse of the mean of grad grad^T over a pilot run."""
    size = int(np.prod(shape))
    x = rng.standard_normal(shape)
    fisher = RIDGE * np.eye(size)
    for _ in range(length):
        gradient = np.asarray(estimator.estimate(rng, (), x)[0].gradient)
        flat = gradient.reshape(-1)
        fisher += np.outer(flat, flat) / length
        tamed = gradient / (1 + PILOT_STEP * np.sqrt(np.sum(flat**2)))
        x = x - PILOT_STEP * tamed + np.sqrt(2 * PILOT_STEP) * rng.standard_normal(shape)
    factor = np.linalg.inv(np.linalg.cholesky(fisher)).T
    return factor / np.sqrt(np.trace(factor @ factor.T) / size)


def two_humped(rng, size, spread):
    """Symmetric noise of variance one around +-sqrt(1 - spread^2)."""
    signs = 2 * rng.integers(0, 2, size) - 1
    return np.sqrt(1 - spread**2) * signs + spread * rng.standard_normal(size)


def fisher_barker(pilot_length=100, spread=0.4):
    """Barker steps without a test, of weak order one."""
    if pilot_length < 1:
        raise ValueError("the pilot run needs a step")
    if not 0 < spread <= 1:
        raise ValueError("spread lies in (0, 1]")

    def init(rng, position, estimator):
        position = np.array(position)
        return {"position": position, "factor": pilot_factor(rng, position.shape, estimator, pilot_length)}

    def step(rng, state, h, estimator):
        x, factor = state["position"], state["factor"]
        gradient = np.asarray(estimator.estimate(rng, (), x)[0].gradient).reshape(-1)
        z = np.sqrt(2 * h) * two_humped(rng, x.size, spread)
        forward = 1 / (1 + np.exp(z * (factor.T @ gradient)))
        move = np.where(rng.random(x.size) < forward, z, -z)
        return {"position": x + (factor @ move).reshape(x.shape), "factor": factor}

    return simple_sampler(
        step, init=init, backend="host", claims=Claims(Source("livingstone2022barker", "section 3"), StationaryLaw(order=1))
    )
