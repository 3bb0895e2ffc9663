"""Hamiltonian Monte Carlo that compares the wrong energies, or returns to the wrong point after a rejection.

Momenta are standard normals, trajectories have three leapfrog steps, and all claim to leave exp(-U) invariant.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source

EXACT = Claims(Source("", "Hamiltonian Monte Carlo"), ExactLaw())
NEEDS = ("gradient", "potential")
STEPS = 3


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _potential(estimator, key):
    """U as a function, which asks for each of its two values with a key of its own."""
    keys = iter(jax.random.split(key))
    return lambda y: estimator.estimate(next(keys), (), y)[0].potential


def _kinetic(r):
    return jnp.sum(r**2) / 2


def _trajectory(key, x, r, h, estimator):
    """All points (position, momentum) of a leapfrog trajectory, the first one included."""
    keys = iter(jax.random.split(key, 2 * STEPS))
    gradient = lambda y: estimator.estimate(next(keys), (), y)[0].gradient
    points = [(x, r)]
    for _ in range(STEPS):
        r = r - h / 2 * gradient(x)
        x = x + h * r
        r = r - h / 2 * gradient(x)
        points.append((x, r))
    return points


def _hmc(log_ratio, rejected=lambda points: points[0][0]):
    """HMC that accepts by `log_ratio(points, U, x)` and else goes to `rejected(points)`; U is a function."""

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        potential = _potential(estimator, k4)
        points = _trajectory(k2, x, _normal(k1, x), h, estimator)
        accept = jnp.log(jax.random.uniform(k3, dtype=x.dtype)) < log_ratio(points, potential)
        return jnp.where(accept, points[-1][0], rejected(points))

    return simple_sampler(step, needs=NEEDS, claims=EXACT)


def _energy(potential, point):
    return potential(point[0]) + _kinetic(point[1])


def _fall(points, potential):
    return _energy(potential, points[0]) - _energy(potential, points[-1])


def _fall_from_position(points, potential):
    """The kinetic energy at the start is that of the position."""
    x = points[0][0]
    return potential(x) + _kinetic(x) - _energy(potential, points[-1])


# The kinetic energy at the start is given the position in place of the momentum.
blackjax_46_before = _hmc(_fall_from_position)
blackjax_46_after = _hmc(_fall)


def _last_step(points, potential):
    return _energy(potential, points[-2]) - _energy(potential, points[-1])


# The energy is compared with that before the last leapfrog step, and a rejection goes back by this step alone.
keanu_33_before = _hmc(_last_step, lambda points: points[-2][0])
keanu_33_after = _hmc(_fall)


def _with_prior(complete):
    """HMC on a sum over data, whose log-likelihood in the energy is brought up to date only if `complete`."""

    def build(target):
        terms = target.terms
        prior = terms.prior if terms else jnp.sum

        def log_ratio(points, potential):
            if complete or not terms:
                return _fall(points, potential)
            old = potential(points[0][0]) - prior(points[0][0])
            energy = lambda point: prior(point[0]) + old + _kinetic(point[1])
            return energy(points[0]) - energy(points[-1])

        return _hmc(log_ratio)

    return build


def gpflow_894_before(target):
    """The energy of the proposal has its prior and the log-likelihood of the start."""
    return _with_prior(False)(target)


def gpflow_894_after(target):
    """Both at the proposal."""
    return _with_prior(True)(target)


class Energetic(NamedTuple):
    """Position and the energy that the next decision starts from."""

    position: Any
    energy: Any


def _keeping_energy(anew):
    """HMC whose energy at the start is that of the drawn momentum, or the one kept from before it was drawn."""

    def init(key, x, estimator):
        k1, k2 = jax.random.split(key)
        return Energetic(x, estimator.estimate(k1, (), x)[0].potential + _kinetic(_normal(k2, x)))

    def step(key, state, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        x = state.position
        potential = _potential(estimator, k4)
        points = _trajectory(k2, x, _normal(k1, x), h, estimator)
        start = _energy(potential, points[0]) if anew else state.energy
        end = _energy(potential, points[-1])
        accept = jnp.log(jax.random.uniform(k3, dtype=x.dtype)) < start - end
        return Energetic(jnp.where(accept, points[-1][0], x), jnp.where(accept, end, start))

    return simple_sampler(step, init=init, position=lambda state: state.position, needs=NEEDS, claims=EXACT)


# The energy is kept from the last step, and does not know that the momentum was drawn anew.
flowmc_78_before = _keeping_energy(False)
flowmc_78_after = _keeping_energy(True)
