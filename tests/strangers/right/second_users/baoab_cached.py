"""BAOAB as in our molecular dynamics code: the force at the end of a step is kept for the first kick of the next one."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree


@jax.tree_util.register_dataclass
@dataclass
class MDState:
    position: object
    velocity: object
    force: object


def axpy(a, x, y):
    return jax.tree.map(lambda x, y: a * x + y, x, y)


def gaussian(key, like):
    flat, back = ravel_pytree(like)
    return back(jax.random.normal(key, flat.shape, flat.dtype))


class BAOAB:
    def __init__(self, gamma: float = 1.0, mass: float = 2.0, temperature: float = 1.0):
        self.gamma = gamma
        self.mass = mass
        self.temperature = temperature

    def force(self, key, x, estimator):
        return jax.tree.map(jnp.negative, estimator.estimate(key, (), x)[0].gradient)

    def init(self, key, position, estimator):
        kv, kf = jax.random.split(key)
        std = (self.temperature / self.mass) ** 0.5
        velocity = jax.tree.map(lambda n: std * n, gaussian(kv, position))
        return MDState(position, velocity, self.force(kf, position, estimator))

    def step(self, key, state, dt, estimator):
        ko, kf = jax.random.split(key)
        x, v, f = state.position, state.velocity, state.force
        v = axpy(0.5 * dt / self.mass, f, v)  # B
        x = axpy(0.5 * dt, v, x)  # A
        c1 = jnp.exp(-self.gamma * dt)  # O
        c2 = jnp.sqrt((1 - c1**2) * self.temperature / self.mass)
        v = jax.tree.map(lambda v, n: c1 * v + c2 * n, v, gaussian(ko, v))
        x = axpy(0.5 * dt, v, x)  # A
        f = self.force(kf, x, estimator)
        v = axpy(0.5 * dt / self.mass, f, v)  # B
        return MDState(x, v, f)
