"""Groenbech-Jensen & Farago (2013) Verlet-type Langevin integrator ("GJF"), with mass and friction.

    b = 1 / (1 + g dt / 2m),  a = b (1 - g dt / 2m),  beta ~ N(0, 2 g kT dt)
    x' = x + b dt v - b dt^2 / (2m) U'(x) + b dt / (2m) beta
    v' = a v - dt / (2m) (a U'(x) + U'(x')) + (b / m) beta

Right: one noise per step drives both lines; the configurational law is exact for a harmonic potential at every dt
and has an error O(dt^2) otherwise.  The force at x' is kept in the state for the next step.   Object: GJF
"""
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class Particle(NamedTuple):
    position: Any
    velocity: Any
    force: Any


def _noise_like(key, tree):
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([jax.random.normal(k, jnp.shape(l), l.dtype) for k, l in zip(keys, leaves)])


@dataclass(frozen=True)
class GJF:
    mass: float = 1.5
    friction: float = 1.2
    temperature: float = 1.0

    @property
    def claims(self):
        return Claims(Source("", "own"), StationaryLaw(order=2, temperature=self.temperature))

    def _force(self, key, x, estimator):
        estimate, _ = estimator.estimate(key, (), x)
        return jax.tree.map(jnp.negative, estimate.gradient)

    def init(self, key, position, estimator):
        k_velocity, k_force = jax.random.split(key)
        sd = (self.temperature / self.mass) ** 0.5
        velocity = jax.tree.map(lambda n: sd * n, _noise_like(k_velocity, position))
        return Particle(position, velocity, self._force(k_force, position, estimator))

    def step(self, key, state, step_size, estimator):
        k_noise, k_force = jax.random.split(key)
        dt, m, g = step_size, self.mass, self.friction
        half = g * dt / (2 * m)
        b = 1 / (1 + half)
        a = (1 - half) * b
        sd = jnp.sqrt(2 * g * self.temperature * dt)
        beta = jax.tree.map(lambda n: (sd * n).astype(n.dtype), _noise_like(k_noise, state.position))

        def drift(x, v, f, n):
            return (x + b * dt * v + b * dt * dt / (2 * m) * f + b * dt / (2 * m) * n).astype(x.dtype)

        def kick(v, f, f_new, n):
            return (a * v + dt / (2 * m) * (a * f + f_new) + b / m * n).astype(v.dtype)

        x = jax.tree.map(drift, state.position, state.velocity, state.force, beta)
        force = self._force(k_force, x, estimator)
        v = jax.tree.map(kick, state.velocity, state.force, force, beta)
        return Particle(x, v, force)
