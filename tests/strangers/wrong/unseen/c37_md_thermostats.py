"""Thermostats from our molecular-dynamics engine (NumPy, unit Boltzmann constant)."""

from dataclasses import dataclass

import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.estimators.host import estimator_key


def force(rng, estimator, unravel, x):
    """Minus the gradient of the potential energy, flat."""
    gradient = estimator.estimate(estimator_key(rng, estimator), (), unravel(x))[0].gradient
    return -np.asarray(ravel_pytree(gradient)[0])


def draw(rng, like):
    """Standard normal numbers of the size and type of a vector."""
    return rng.standard_normal(like.size).astype(like.dtype)


@dataclass
class Particles:
    """Coordinates, velocities (or momenta) and thermostat variable."""

    position: object
    v: np.ndarray
    xi: float = 0.0


@dataclass(frozen=True)
class WeakCoupling:
    """Velocity Verlet in a weak-coupling bath of Berendsen et al., temperature 1, unit masses."""

    relaxation: float = 0.5
    backend = "host"

    def init(self, rng, position, estimator):
        return Particles(position, draw(rng, np.asarray(ravel_pytree(position)[0])))

    def step(self, rng, state, step_size, estimator):
        flat, unravel = ravel_pytree(state.position)
        x, dt = np.asarray(flat), float(step_size)
        v = state.v + 0.5 * dt * force(rng, estimator, unravel, x)
        x = x + dt * v
        v = v + 0.5 * dt * force(rng, estimator, unravel, x)
        current = max(float(v @ v) / v.size, 1e-8)
        rescale = np.sqrt(max(1.0 + dt / self.relaxation * (1.0 / current - 1.0), 0.0))
        return Particles(unravel(x), (rescale * v).astype(x.dtype))


@dataclass(frozen=True)
class NoseHooverLangevin:
    """Stochastic-gradient Nose-Hoover thermostat for particles of a given mass; the state holds momenta."""

    friction: float = 1.0
    mass: float = 1.0
    backend = "host"

    def init(self, rng, position, estimator):
        x = np.asarray(ravel_pytree(position)[0])
        return Particles(position, self.mass**0.5 * draw(rng, x), self.friction)

    def step(self, rng, state, step_size, estimator):
        flat, unravel = ravel_pytree(state.position)
        x, h = np.asarray(flat), float(step_size)
        p = state.v + h * force(rng, estimator, unravel, x) - h * state.xi * state.v
        p = p + (2 * self.friction * h) ** 0.5 * draw(rng, x)
        x = x + h * p / self.mass
        xi = state.xi + h * (float(p @ p) / p.size - 1.0)
        return Particles(unravel(x.astype(p.dtype)), p, xi)


@dataclass(frozen=True)
class Andersen:
    """Velocity Verlet with Andersen's collisions: each velocity is drawn anew at a rate."""

    rate: float = 1.0
    temperature: float = 1.0
    backend = "host"

    def init(self, rng, position, estimator):
        return Particles(position, draw(rng, np.asarray(ravel_pytree(position)[0])))

    def step(self, rng, state, step_size, estimator):
        flat, unravel = ravel_pytree(state.position)
        x, dt = np.asarray(flat), float(step_size)
        v = state.v + 0.5 * dt * force(rng, estimator, unravel, x)
        x = x + dt * v
        v = v + 0.5 * dt * force(rng, estimator, unravel, x)
        hit = rng.random(x.size) < -np.expm1(-self.rate * dt)
        v = np.where(hit, self.temperature * draw(rng, x), v).astype(x.dtype)
        return Particles(unravel(x.astype(v.dtype)), v)
