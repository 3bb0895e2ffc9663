"""Parallel tempering with two chains that keep their energies."""

from dataclasses import dataclass, replace

import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

BETA = 0.3


@dataclass
class Pair:
    position: np.ndarray
    hot: np.ndarray
    u_position: float
    u_hot: float


def energy(rng, x, estimator):
    return float(estimator.estimate(rng, (), x)[0].potential)


def init(rng, position, estimator):
    x = np.array(position, dtype=float)
    y = x + rng.standard_normal(x.shape)
    return Pair(x, y, energy(rng, x, estimator), energy(rng, y, estimator))


def walk(rng, x, u, beta, h, estimator):
    y = x + np.sqrt(2 * h / beta) * rng.standard_normal(x.shape)
    v = energy(rng, y, estimator)
    return (y, v) if np.log(rng.random()) < beta * (u - v) else (x, u)


def step(rng, state, h, estimator):
    x, u = walk(rng, state.position, state.u_position, 1.0, h, estimator)
    y, v = walk(rng, state.hot, state.u_hot, BETA, h, estimator)
    state = Pair(x, y, u, v)
    if rng.random() < 0.2 and np.log(rng.random()) < (1 - BETA) * (u - v):
        state = replace(state, position=y, hot=x)
    return state


tempering = simple_sampler(step, init=init, claims=Claims(Source("", "own"), ExactLaw()), backend="host")
