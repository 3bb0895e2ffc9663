"""SGLD with Gaussian noise made by Box-Muller, eight lanes at a time."""

import numpy as np

LANES = 8


def box_muller(rng, n):
    u = 1.0 - rng.random(n // 2)
    v = rng.random(n // 2)
    radius = np.sqrt(-2.0 * np.log(u))
    angle = 2.0 * np.pi * v
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])


class LaneSGLD:
    backend = "host"

    def init(self, rng, position, estimator):
        return np.array(position, dtype=float)

    def step(self, rng, state, step_size, estimator):
        grad = estimator.estimate(rng, (), state)[0].gradient
        noise = np.resize(box_muller(rng, LANES), state.shape)
        return state - step_size * grad + np.sqrt(2.0 * step_size) * noise
