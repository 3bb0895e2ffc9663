"""Class 15: thermostats (SGNHT) that are driven by the wrong quantity, and momenta that are read at the wrong time."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Diffusion, Source, StationaryLaw, StationaryMoments


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class State(NamedTuple):
    position: Any
    momentum: Any
    xi: Any


def _thermostat(drive, start=1.0, sign=-1.0, change=lambda xi: xi, noise=1.0, claims=None):
    """SGNHT by Euler: r, then theta and xi with the new r; d xi = `drive(r, d)` dt."""

    def init(key, x, estimator):
        return State(x, _normal(key, x), jnp.asarray(start, x.dtype))

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, r, xi = state
        r = r - h * grad(estimator, k1, x) + sign * h * xi * r + noise * jnp.sqrt(2 * h) * _normal(k2, x)
        return State(x + h * r, r, change(xi + h * drive(r, x.size)))

    return simple_sampler(step, init=init, position=lambda s: s.position, unpack=lambda s: s,
                          pack=lambda key, z, estimator: State(*z), claims=claims)


# Driven by r.r - 2 d T: the factor 1/2 of the kinetic energy is on one side only. T = 2.
sgnht_two_d = _thermostat(lambda r, d: jnp.sum(r**2) / d - 2)

# Driven by r.r - T without d: T = 1 / d (d = 1 is right).
sgnht_no_d = _thermostat(lambda r, d: jnp.sum(r**2) - 1)

# Degrees of freedom d - 1 ("the centre of mass is fixed", from molecular dynamics): T = (d - 1) / d; d = 1 is right.
sgnht_centre_of_mass = _thermostat(lambda r, d: jnp.sum(r**2) / max(d - 1, 1) - 1)

# Driven by the mean of |r| instead of r^2: T = pi / 2 or so.
sgnht_absolute_momentum = _thermostat(lambda r, d: jnp.mean(jnp.abs(r)) - 1)

# The thermostat starts at 0 and is never moved: noise without friction, the temperature grows for ever.
sgnht_never_moved = _thermostat(lambda r, d: 0.0, start=0.0)

# The friction has the wrong sign: a hot system is heated.
sgnht_sign = _thermostat(lambda r, d: jnp.sum(r**2) / d - 1, sign=+1.0)

# "A friction cannot be negative": xi is clipped at 0, where N(1, 1 / d) often is negative.
sgnht_nonnegative = _thermostat(lambda r, d: jnp.sum(r**2) / d - 1, change=lambda xi: jnp.maximum(xi, 0))

# xi is clipped to [0, 1] by a user who wants a friction of at most 1.
sgnht_clipped_at_1 = _thermostat(lambda r, d: jnp.sum(r**2) / d - 1, change=lambda xi: jnp.clip(xi, 0.0, 1.0))

# Nose-Hoover without noise (A = 0): deterministic, and not ergodic.
nose_hoover_no_noise = _thermostat(lambda r, d: jnp.sum(r**2) / d - 1, start=0.0, noise=0.0)

# The thermostat reads the first coordinate and damps all of them (d = 1 is right).
sgnht_first_coordinate = _thermostat(lambda r, d: r.ravel()[0] ** 2 - 1)

# Euler claims invariant order 2: Var x = (1 - h / 2 + ...) / k at A = 1.
sgnht_euler_order_2 = _thermostat(
    lambda r, d: jnp.sum(r**2) / d - 1, claims=Claims(Source("ding2014bayesian", ""), StationaryLaw(order=2))
)


def _momentum_thermostat_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = state["position"], state["momentum"], state["xi"]
    r = r - h * grad(estimator, k1, x) - h * xi * r + jnp.sqrt(2 * h) * _normal(k2, x)
    x = x + h * r
    temperature = 0.99 * state["temperature"] + 0.01 * jnp.mean(r**2)  # smoothed
    xi = xi + h * jnp.tanh(10 * (temperature - 1)) * 0.1 + h * (temperature > 1.5)
    xi = jnp.where(temperature < 1, xi - h, xi)
    return {"position": x, "momentum": r, "xi": jnp.maximum(xi, 0.05), "temperature": temperature}


# A home-made thermostat: smoothed temperature, switches, a least friction of 0.05. No dynamics that keeps exp(-H).
homemade_thermostat = simple_sampler(
    _momentum_thermostat_step,
    init=lambda key, x, estimator: {"position": x, "momentum": _normal(key, x), "xi": jnp.ones((), x.dtype),
                                    "temperature": jnp.ones((), x.dtype)},
)


class Middle(NamedTuple):
    position: Any
    momentum: Any
    middle: Any


def _baoab_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r, _ = state
    c = jnp.exp(-h)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = middle = c * r + jnp.sqrt(1 - c**2) * _normal(k2, x)
    x = x + h / 2 * r
    return Middle(x, r - h / 2 * grad(estimator, k3, x), middle)


# BAOAB that reports the momentum from before the last kick as part of z, and claims Var r = 1 - h^2 k / 4 of it.
baoab_early_momentum = simple_sampler(
    _baoab_step, init=lambda key, x, estimator: Middle(x, _normal(key, x), jnp.zeros_like(x)),
    position=lambda s: s.position, unpack=lambda s: (s.position, s.middle),
    pack=lambda key, z, estimator: Middle(z[0], z[1], z[1]),
    claims=Claims(Source("leimkuhler2013rational", "BAOAB"), StationaryLaw(order=2),
                  Diffusion(lambda target: langevin_dynamics(target, 1.0), weak_order=2),
                  StationaryMoments(lambda h, k: {"position": 1 / k, "momentum": 1 - h * h * k / 4})),
)


def _half_noise_friction_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = state
    r = jnp.exp(-xi * h / 2) * r
    r = r - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    r = jnp.exp(-xi * h / 2) * r
    x = x + h * r
    drive = jnp.mean(r**2) - jnp.mean(state.momentum**2)  # compares with the last step, not with T
    return State(x, r, xi + drive)


# The thermostat is driven by the change of the kinetic energy since the last step: nothing holds T at 1.
sgnht_difference = simple_sampler(
    _half_noise_friction_step, init=lambda key, x, estimator: State(x, _normal(key, x), jnp.ones((), x.dtype)),
    position=lambda s: s.position, unpack=lambda s: s, pack=lambda key, z, estimator: State(*z),
)
