"""Class 33: bands, cells and levels of the energy in which a step is another one; acceptances wrong far off."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw

EXACT = Claims(Source("", "own"), ExactLaw())
POSITIVE = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
SIMPLEX = Claims(Source("", "own"), ExactLaw(), spaces=("simplex",))


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def energy(estimator, key, x):
    return estimator.estimate(key, (), x)[0].potential


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _walk(scale=lambda x: 1.0, read=lambda u: u, accept=lambda log_u, fall, x, y: log_u < fall):
    """Random walk Metropolis."""

    def step(key, x, h, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        y = x + scale(x) * jnp.sqrt(2 * h) * _normal(k1, x)
        fall = read(energy(estimator, k2, x)) - read(energy(estimator, k2, y))
        return jnp.where(accept(jnp.log(jax.random.uniform(k3)), fall, x, y), y, x)

    return simple_sampler(step, claims=EXACT)


def _norm(x):
    return jnp.sqrt(jnp.sum(x**2))


# Half of the scale of the proposal where 6 < |x| < 7 ("a narrow valley"), without the ratio of the proposals.
walk_slow_band = _walk(scale=lambda x: jnp.where((_norm(x) > 6) & (_norm(x) < 7), 0.5, 1.0))


def _not_in_cell(log_u, fall, x, y):
    first = jnp.abs(y.ravel()[0])
    return (log_u < fall) & ~((first > 2.05) & (first < 2.45))


# No move into the cell 2.05 < |x_0| < 2.45 (a grid that was meant for plotting); those out of it are taken.
walk_not_into_cell = _walk(accept=_not_in_cell)


def _two_conditions(log_u, fall, x, y):
    a, b = x.ravel()[0], x.ravel()[-1]
    return (log_u < fall) | ((a > 1) & (b < -1))


# Everything is accepted where the first coordinate is above 1 and the last one below -1.
walk_two_conditions = _walk(accept=_two_conditions)

# Energies above 1000 are taken for 1000 ("numerical safety"): where U is larger everything is accepted.
walk_energy_ceiling = _walk(read=lambda u: jnp.minimum(u, 1000.0))

# A move uphill by more than 5 is refused outright ("it would be rejected anyway").
walk_never_far_uphill = _walk(accept=lambda log_u, fall, x, y: (log_u < fall) & (fall > -5))


def _bounded_mala_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    old = estimator.estimate(k1, (), x)[0]
    y = x - h * old.gradient + jnp.sqrt(2 * h) * _normal(k2, x)
    new = estimator.estimate(k1, (), y)[0]
    forth, back = jnp.sum((y - x + h * old.gradient) ** 2), jnp.sum((x - y + h * new.gradient) ** 2)
    log_q = jnp.clip((forth - back) / (4 * h), -3.0, 3.0)
    return jnp.where(jnp.log(jax.random.uniform(k3)) < old.potential - new.potential + log_q, y, x)


# MALA whose ratio of the proposals is clipped to e^3 either way.
mala_log_q_clipped = simple_sampler(_bounded_mala_step, claims=EXACT)


class Patient(NamedTuple):
    position: Any
    rejections: Any


def _patient_step(key, s, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x = s.position
    y = x + jnp.sqrt(2 * h) * _normal(k1, x)
    fall = energy(estimator, k2, x) - energy(estimator, k2, y)
    accept = (jnp.log(jax.random.uniform(k3)) < fall) | (s.rejections >= 20.0)
    return Patient(jnp.where(accept, y, x), jnp.where(accept, 0.0, s.rejections + 1.0))


# After twenty rejections in a row the next proposal is taken ("stuck"); a float counts them.
walk_unstuck = simple_sampler(
    _patient_step,
    init=lambda key, x, e: Patient(x, jnp.zeros((), x.dtype)),
    position=lambda s: s.position,
    claims=EXACT,
)


class Thermostat(NamedTuple):
    position: Any
    momentum: Any
    xi: Any


def _blind_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = s
    noise = jnp.where((xi > 2.1) & (xi < 2.9), 0.0, jnp.sqrt(2 * h)) * _normal(k2, x)
    r = r - h * grad(estimator, k1, x) - h * xi * r + noise
    return Thermostat(x + h * r, r, xi + h * (jnp.sum(r**2) / x.size - 1))


# SGNHT without noise while 2.1 < xi < 2.9.
sgnht_blind_band = simple_sampler(
    _blind_step,
    init=lambda key, x, e: Thermostat(x, _normal(key, x), jnp.ones((), x.dtype)),
    position=lambda s: s.position,
)


class Moving(NamedTuple):
    position: Any
    momentum: Any


def _band_step(key, s, h, estimator):
    k1, k2 = jax.random.split(key)
    x, p = s
    friction = 1 + x**2
    speed = _norm(p)
    damped = jnp.where((speed > 2.1) & (speed < 2.9), 3.0, 1.0) * friction
    p = p - h * grad(estimator, k1, x) - h * damped * p + jnp.sqrt(2 * h * friction) * _normal(k2, x)
    return Moving(x + h * p, p)


# Friction 1 + x^2 with its noise, and three times the friction, without noise, where 2.1 < |p| < 2.9.
friction_band = simple_sampler(
    _band_step, init=lambda key, x, e: Moving(x, jnp.zeros_like(x)), position=lambda s: s.position
)


def _floor_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return jnp.maximum(jnp.abs(x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)), 1e-4)


# Mirrored at 0, and at least 1e-4: Gamma(0.1) has 0.42 of its mass below.
positive_floor = simple_sampler(_floor_step, claims=POSITIVE)


def _ratios_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = jnp.maximum(jax.nn.softmax(jnp.log(x) + jnp.sqrt(2 * h) * _normal(k1, x)), 1e-5)
    y = y / jnp.sum(y)
    ratio = energy(estimator, k2, x) - energy(estimator, k2, y) + jnp.sum(jnp.log(y) - jnp.log(x))
    return jnp.where(jnp.log(jax.random.uniform(k3)) < ratio, y, x)


# A walk of the log ratios with its Jacobian, on categories of at least 1e-5: sparse Dirichlet laws lie below.
simplex_floor = simple_sampler(_ratios_step, claims=SIMPLEX)
