"""Randomized midpoint method for underdamped Langevin (Shen and Lee, NeurIPS 2019, Algorithm 1), friction 2, u = 1/L = 1."""

import numpy as np

from sgmcmc_verification.samplers import simple_sampler

U = 1.0


def brownian_pair(rng, t, shape):
    """(int_0^t dB, int_0^t exp(-2 (t - s)) dB_s), jointly Gaussian."""
    smooth = np.sqrt(-np.expm1(-4 * t) / 4) * rng.standard_normal(shape)
    rest = np.sqrt(np.maximum(t - np.tanh(t), 0.0)) * rng.standard_normal(shape)
    return 2 / (1 + np.exp(-2 * t)) * smooth + rest, smooth


def step(rng, state, h, estimator):
    x, v = state["position"], state["velocity"]
    alpha = rng.random()
    early, late = alpha * h, (1 - alpha) * h
    b1, i1 = brownian_pair(rng, early, x.shape)
    b2, i2 = brownian_pair(rng, late, x.shape)

    w1 = b1 - i1
    w3 = np.exp(-2 * late) * i1 + i2
    w2 = b1 + b2 - w3

    grad = estimator.estimate(rng, (), x)[0].gradient
    lost = -np.expm1(-2 * early)
    middle = x + lost / 2 * v - U / 2 * (early - lost / 2) * grad + np.sqrt(U) * w1

    grad = estimator.estimate(rng, (), middle)[0].gradient
    new_x = x - np.expm1(-2 * h) / 2 * v + U * h / 2 * np.expm1(-2 * late) * grad + np.sqrt(U) * w2
    new_v = np.exp(-2 * h) * v - U * h * np.exp(-2 * late) * grad + 2 * np.sqrt(U) * w3
    return {"position": new_x, "velocity": new_v}


def init(rng, position, estimator):
    x = np.array(position)
    return {"position": x, "velocity": np.sqrt(U) * rng.standard_normal(x.shape)}


rmm = simple_sampler(step, init=init, backend="host")
