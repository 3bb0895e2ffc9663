"""Langevin steps with a momentum, and thermostats: friction, noise, masses and stages that do not belong together.

Right are those of dx = v / m dt, dv = -grad U dt - C v dt + sqrt(2 C m) dW, whose law is exp(-U - v^2 / (2 m)).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


class Phase(NamedTuple):
    """Position and momentum or velocity."""

    position: Any
    momentum: Any


def _phases(move):
    """A sampler with the step `move(x, v, gradient, z, h)`: `gradient(y)` is grad U there, z a standard normal."""

    def step(key, state, h, estimator):
        noise_key, *keys = jax.random.split(key, 3)
        unused = iter(keys)
        gradient = lambda y: estimator.estimate(next(unused), (), y)[0].gradient
        return Phase(*move(*state, gradient, _normal(noise_key, state.position), h))

    return simple_sampler(
        step,
        init=lambda key, x, estimator: Phase(x, _normal(key, x)),
        position=lambda state: state.position,
        unpack=lambda state: state,
        pack=lambda key, z, estimator: Phase(*z),
    )


DECAY = 0.5


def _decaying(friction):
    """SGHMC whose momentum loses `friction(h)` of itself a step; the noise is that of the friction DECAY in time."""

    def move(x, v, gradient, z, h):
        v = v - h * gradient(x) - friction(h) * v + jnp.sqrt(2 * DECAY * h) * z
        return x + h * v, v

    return _phases(move)


# The friction lacks the step size.
pybnn_4_before = _decaying(lambda h: DECAY)
pybnn_4_after = _decaying(lambda h: DECAY * h)


def _sghmc(deviation, friction=1.0):
    """Semi-implicit SGHMC with noise of `deviation` per root of time."""

    def move(x, v, gradient, z, h):
        v = v - h * gradient(x) - h * friction * v + deviation * jnp.sqrt(h) * z
        return x + h * v, v

    return _phases(move)


# The noise that belongs to the friction is left out.
turbofreeze_2_before = _sghmc(0.0)
turbofreeze_2_after = _sghmc(2.0**0.5)

HALF = 0.5

# The noise is that of a Langevin step for the momentum alone, multiplied by the friction: C sqrt(2 h).
fgh_flow_sghmc_before = _sghmc(HALF * 2.0**0.5, friction=HALF)
fgh_flow_sghmc_after = _sghmc((2.0 * HALF) ** 0.5, friction=HALF)


class Thermostat:
    """Friction and the amplitude of the noise that follows from it."""

    def __init__(self, refreshes):
        self.friction, self.refreshes = 1.0, refreshes
        self.amplitude = (2 * self.friction) ** 0.5

    def set_friction(self, friction):
        self.friction = friction
        if self.refreshes:
            self.amplitude = (2 * friction) ** 0.5
        return self


def _with(thermostat):
    return _sghmc(thermostat.amplitude, thermostat.friction)


# The amplitude of the noise stays as it was when the friction is set.
pq_273_before = _with(Thermostat(refreshes=False).set_friction(4.0))
pq_273_after = _with(Thermostat(refreshes=True).set_friction(4.0))


def _kick(x, v, gradient, h):
    return x, v - h / 2 * gradient(x)


def _rest(x, v, gradient, z, h):
    """Drift, friction with noise, drift, kick."""
    c = jnp.exp(-h)
    x = x + h / 2 * v
    v = c * v + jnp.sqrt(1 - c**2) * z
    x = x + h / 2 * v
    return x, v - h / 2 * gradient(x)


def _two_stages(second):
    """BAOAB in two stages, a half kick and the rest."""

    def move(x, v, gradient, z, h):
        x, v = _kick(x, v, gradient, h)
        return second(x, v, gradient, z, h)

    return _phases(move)


# The first stage is called twice, and the second never: no position is moved.
sgmcmcjax_69_before = _two_stages(lambda x, v, gradient, z, h: _kick(x, v, gradient, h))
sgmcmcjax_69_after = _two_stages(_rest)


def _partial(deviation):
    """Partial refreshment a v + deviation(a) z with a = exp(-h), then a leapfrog step."""

    def move(x, v, gradient, z, h):
        a = jnp.exp(-h)
        v = a * v + deviation(a) * z
        v = v - h / 2 * gradient(x)
        x = x + h * v
        return x, v - h / 2 * gradient(x)

    return _phases(move)


# 1 - a^2 without its root.
advancedhmc_280_before = _partial(lambda a: 1 - a**2)
advancedhmc_280_after = _partial(lambda a: jnp.sqrt(1 - a**2))

MASS = 2.0


def _with_mass(of_force):
    """A velocity v with the noise of a mass, and a force that is divided by `of_force`."""

    def move(x, v, gradient, z, h):
        v = v - h * gradient(x) / of_force - h * v + jnp.sqrt(2 * h / MASS) * z
        return x + h * v, v

    return _phases(move)


# The force is not divided by the mass.
jax_md_145_before = _with_mass(1.0)
jax_md_145_after = _with_mass(MASS)


def _middle(kept):
    """A step whose noise is added in the middle; `kept(decayed, noisy)` is the velocity that goes on."""

    def move(x, v, gradient, z, h):
        v = v - h * gradient(x)
        x = x + h / 2 * v
        c = jnp.exp(-h)
        noisy = c * v + jnp.sqrt(1 - c**2) * z
        return x + h / 2 * noisy, kept(c * v, noisy)

    return _phases(move)


# The noisy velocity moves the position and is then thrown away.
mlx_atomistic_20_before = _middle(lambda decayed, noisy: decayed)
mlx_atomistic_20_after = _middle(lambda decayed, noisy: noisy)


def _leapfrog(drift):
    """Full friction and noise, then a leapfrog step whose drift lasts `drift` of a step."""

    def move(x, v, gradient, z, h):
        c = jnp.exp(-h)
        v = c * v + jnp.sqrt(1 - c**2) * z
        v = v - h / 2 * gradient(x)
        x = x + drift * h * v
        return x, v - h / 2 * gradient(x)

    return _phases(move)


# The position is moved by half of a step.
keanu_492_before = _leapfrog(0.5)
keanu_492_after = _leapfrog(1.0)


def _momentum_of_mass(velocity):
    """A momentum with the noise of MASS; `velocity(r)` moves the position."""

    def move(x, r, gradient, z, h):
        c = jnp.exp(-h)
        r = c * r + jnp.sqrt(MASS * (1 - c**2)) * z
        r = r - h / 2 * gradient(x)
        x = x + h * velocity(r)
        return x, r - h / 2 * gradient(x)

    return _phases(move)


# The velocity is M r, for momenta from N(0, M): their law would have to be N(0, 1 / M).
pigeons_135_before = _momentum_of_mass(lambda r: MASS * r)
pigeons_135_after = _momentum_of_mass(lambda r: r / MASS)


class Chained(NamedTuple):
    """Position, velocity, friction."""

    position: Any
    velocity: Any
    friction: Any


def _nose_hoover(first):
    """A thermostat that scales the velocity by an accumulated factor, which begins at `first`."""

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, v, xi = state
        v = first * jnp.exp(-h * xi) * v
        v = v - h * estimator.estimate(k1, (), x)[0].gradient + jnp.sqrt(2 * h) * _normal(k2, x)
        return Chained(x + h * v, v, xi + h * (jnp.mean(v**2) - 1))

    return simple_sampler(
        step,
        init=lambda key, x, estimator: Chained(x, _normal(key, x), jnp.ones((), x.dtype)),
        position=lambda state: state.position,
        unpack=lambda state: state,
        pack=lambda key, z, estimator: Chained(*z),
    )


# The accumulator of a product begins at zero.
nvalchemi_104_before = _nose_hoover(0.0)
nvalchemi_104_after = _nose_hoover(1.0)
