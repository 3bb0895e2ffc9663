"""Langevin dynamics with a portable generator, the same numbers on every platform: an LCG, seeded anew in each step."""

import numpy as np
from scipy.special import ndtri

A, C, M = 1664525, 1013904223, 2**32  # Numerical Recipes


class LCG:
    def __init__(self, seed, discard=8):
        self.s = int(seed) % M
        for _ in range(discard):
            self.next()

    def next(self):
        self.s = (A * self.s + C) % M
        return (self.s + 0.5) / M

    def normals(self, shape):
        uniforms = [self.next() for _ in range(int(np.prod(shape)))]
        return ndtri(np.array(uniforms)).reshape(shape)


class PortableLangevin:
    backend = "host"

    def init(self, rng, position, estimator):
        return {"position": np.array(position), "seed": int(rng.integers(M))}

    def step(self, rng, state, h, estimator):
        x, seed = state["position"], state["seed"]
        gradient = estimator.estimate(rng, (), x)[0].gradient
        noise = LCG(seed).normals(x.shape)
        return {"position": x - h * gradient + np.sqrt(2 * h) * noise, "seed": seed + 1}
