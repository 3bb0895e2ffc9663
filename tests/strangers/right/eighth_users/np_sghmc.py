"""SGHMC (Chen, Fox and Guestrin 2014) on any tree of arrays, leaf by leaf and in place, Euler in the friction.

dx = v dt,  dv = -grad U dt - C v dt + sqrt(2 C) dW
"""

import jax
import numpy as np


class SGHMC:
    backend = "host"

    def __init__(self, friction=1.5):
        if not friction > 0:
            raise ValueError("friction must be positive")
        self.friction = friction

    def init(self, rng, position, estimator):
        return {
            "position": jax.tree.map(lambda a: np.array(a), position),
            "velocity": jax.tree.map(lambda a: np.array(rng.standard_normal(np.shape(a))), position),
        }

    def step(self, rng, state, h, estimator):
        gradient = estimator.estimate(rng, (), state["position"])[0].gradient
        xs = jax.tree.leaves(state["position"])
        vs = jax.tree.leaves(state["velocity"])
        gs = jax.tree.leaves(gradient)
        sigma = np.sqrt(2 * self.friction * h)
        for x, v, g in zip(xs, vs, gs):
            v[...] += -h * g - h * self.friction * v + sigma * rng.standard_normal(v.shape)
            x[...] += h * v
        return state
