"""Langevin discretisations in NumPy, without a Metropolis test."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw

DIE = np.array([-math.sqrt(3.0), 0.0, 0.0, 0.0, 0.0, math.sqrt(3.0)])


def die_step(rng: np.random.Generator, position, step_size, estimator):
    """SGLD whose noise is a die: -sqrt 3, sqrt 3 with probability 1/6 each, else 0.

    Right to O(h): its moments 1 .. 5 are those of N(0, 1) (E z^2 = 1, E z^4 = 3), so that the local weak error is
    O(h^2) as with Gaussian noise (weak Euler scheme, Kloeden and Platen).
    """
    h = float(step_size)
    gradient = estimator.estimate(rng, (), position)[0].gradient

    def move(x, g):
        x = np.asarray(x)
        noise = DIE[rng.integers(0, 6, size=x.shape)]
        return np.asarray(x - h * np.asarray(g) + math.sqrt(2 * h) * noise, dtype=x.dtype)

    return jax.tree.map(move, position, gradient)


die = simple_sampler(die_step, backend="host")


@dataclass
class Phase:
    """Coordinates, momenta, and the force where the coordinates are."""

    q: Any
    p: Any
    force: Any


class Baoab:
    """BAOAB of Leimkuhler and Matthews with a mass; the state is an object with attributes, the force is reused.

    Right: B, A, O, A, B are exact flows in a symmetric order, so pi_h = exp(-U - p^2 / 2m) + O(h^2) with exact
    gradients; with noisy ones a kick has the variance O(h^2) more, an error O(h).
    """

    backend = "host"
    needs = ("gradient",)
    claims = Claims(
        Source("", "Leimkuhler and Matthews 2013"), StationaryLaw(order=2), conditions=("exact gradient",)
    )

    def __init__(self, friction: float = 1.5, mass: float = 2.0) -> None:
        self.friction, self.mass = friction, mass

    def _force(self, rng, q, estimator):
        return jax.tree.map(lambda g: -np.asarray(g), estimator.estimate(rng, (), q)[0].gradient)

    def init(self, rng, position, estimator):
        q = jax.tree.map(np.array, position)
        p = jax.tree.map(lambda x: np.asarray(rng.normal(0.0, math.sqrt(self.mass), x.shape), x.dtype), q)
        return Phase(q, p, self._force(rng, q, estimator))

    def step(self, rng, state, step_size, estimator):
        h = float(step_size)
        add = lambda tree, other, by: jax.tree.map(lambda a, b: np.asarray(a + by * b), tree, other)
        keep = math.exp(-self.friction * h)
        spread = math.sqrt(self.mass * (1 - keep**2))
        p = add(state.p, state.force, h / 2)
        q = add(state.q, p, h / 2 / self.mass)
        p = jax.tree.map(lambda x: np.asarray(rng.normal(keep * x, spread), x.dtype), p)
        q = add(q, p, h / 2 / self.mass)
        force = self._force(rng, q, estimator)
        return Phase(q, add(p, force, h / 2), force)

    def position(self, state):
        return state.q


baoab = Baoab()
