"""Splittings and exponential integrators of underdamped Langevin dynamics dx = r dt, dr = -grad U dt - C r dt +
sqrt(2 C) dW: BAOAB, OBABO, ABOBA, OABAO, UBU, BBK, the scheme of Cheng et al., the randomised midpoint of Shen
and Lee, leapfrog with partial refreshment. Compositions of exact sub-flows (or consistent substitutes) keep
exp(-U - |r|^2 / 2) up to O(h)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.underdamped import langevin_dynamics
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    Claims,
    Diffusion,
    ExactFreeMotion,
    IndependentNoise,
    ShearingForce,
    Source,
    StationaryLaw,
    StationaryMoments,
)


class Phase(NamedTuple):
    """Position and momentum."""

    position: jax.Array
    momentum: jax.Array


class Cached(NamedTuple):
    """Position, momentum, gradient at the position, estimator state."""

    position: jax.Array
    momentum: jax.Array
    gradient: jax.Array
    estate: Any


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _thermal(key, position, estimator):
    return Phase(position, _normal(key, position))


def phase_sampler(step, claims=None):
    """A sampler with a `Phase` state."""
    return simple_sampler(
        step, init=_thermal, unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z), claims=claims
    )


def unit_friction(target):
    """The equation with C = 1."""
    return langevin_dynamics(target, 1.0)


def ou(key, r, t, friction=1.0):
    """Exact Ornstein-Uhlenbeck flow of the momentum."""
    decay = jnp.exp(-friction * t)
    return decay * r + jnp.sqrt(-jnp.expm1(-2 * friction * t)) * _normal(key, r)


@dataclass(frozen=True)
class BAOAB:
    """BAOAB with the gradient at the end of a step kept for the next; weak order 2, exact positions on Gaussians."""

    friction: float = 1.0

    @property
    def claims(self):
        return Claims(
            Source("leimkuhler2013rational", "BAOAB"),
            StationaryLaw(order=2),
            Diffusion(lambda target: langevin_dynamics(target, self.friction), weak_order=2),
            StationaryMoments(lambda h, k: {"position": 1 / k, "momentum": 1 - h * h * k / 4, "covariance": 0.0}),
            IndependentNoise(),
            ShearingForce(),
        )

    def init(self, key, position, estimator):
        k1, k2 = jax.random.split(key)
        return self.pack(k2, Phase(position, _normal(k1, position)), estimator)

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        h = step_size
        r = state.momentum - h / 2 * state.gradient
        x = state.position + h / 2 * r
        r = ou(k1, r, h, self.friction)
        x = x + h / 2 * r
        estimate, estate = estimator.estimate(k2, state.estate, x)
        return Cached(x, r - h / 2 * estimate.gradient, estimate.gradient, estate)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return Phase(state.position, state.momentum)

    def pack(self, key, z, estimator):
        k1, k2 = jax.random.split(key)
        estimate, estate = estimator.estimate(k2, estimator.init(k1, z.position), z.position)
        return Cached(z.position, z.momentum, estimate.gradient, estate)


def _baoab(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state
    r = r - h / 2 * estimator.estimate(k1, (), x)[0].gradient
    x = x + h / 2 * r
    r = ou(k2, r, h, 2.0)
    x = x + h / 2 * r
    r = r - h / 2 * estimator.estimate(k3, (), x)[0].gradient
    return Phase(x, r)


# BAOAB without a cache, friction 2.
baoab = phase_sampler(_baoab)

# BAOAB that says nothing of its momentum: `init` and `position` alone.
baoab_bare = simple_sampler(_baoab, init=lambda key, position, estimator: Phase(position, jnp.zeros_like(position)))


def _obabo(key, state, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, r = state
    r = ou(k1, r, h / 2)
    r = r - h / 2 * estimator.estimate(k2, (), x)[0].gradient
    x = x + h * r
    r = r - h / 2 * estimator.estimate(k3, (), x)[0].gradient
    return Phase(x, ou(k4, r, h / 2))


# OBABO (Bussi and Parrinello), claimed at order 2; Var x = 1 / (k (1 - h^2 k / 4)), Var r = 1 on U = k x^2 / 2.
obabo = phase_sampler(
    _obabo,
    Claims(
        Source("bussi2007accurate", "the scheme"),
        StationaryLaw(order=2),
        Diffusion(unit_friction, weak_order=2),
        StationaryMoments(lambda h, k: {"position": 1 / (k * (1 - h * h * k / 4)), "momentum": 1.0, "covariance": 0.0}),
        IndependentNoise(),
    ),
)


def _aboba(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    x = x + h / 2 * r
    g = estimator.estimate(k1, (), x)[0].gradient
    r = ou(k2, r - h / 2 * g, h) - h / 2 * g
    return x + h / 2 * r, r


# ABOBA with one gradient a step, state (x, r).
aboba = simple_sampler(
    _aboba,
    init=lambda key, position, estimator: (position, _normal(key, position)),
    position=lambda s: s[0],
    unpack=lambda s: s,
    pack=lambda key, z, estimator: tuple(z),
)


def _oabao(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state["position"], ou(k1, state["momentum"], h / 2)
    x = x + h / 2 * r
    r = r - h * estimator.estimate(k2, (), x)[0].gradient
    return {"position": x + h / 2 * r, "momentum": ou(k3, r, h / 2)}


# OABAO, the state a dict of position and momentum.
oabao = simple_sampler(
    _oabao,
    init=lambda key, position, estimator: {"position": position, "momentum": _normal(key, position)},
    position=lambda s: s["position"],
    unpack=lambda s: s,
    pack=lambda key, z, estimator: dict(z),
)


def _bbk(key, state, h, estimator, c=1.0):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, r = state
    g = estimator.estimate(k1, (), x)[0].gradient
    r = r - h / 2 * (g + c * r) + jnp.sqrt(c * h) * _normal(k2, r)
    x = x + h * r
    g = estimator.estimate(k3, (), x)[0].gradient
    return Phase(x, (r - h / 2 * g + jnp.sqrt(c * h) * _normal(k4, r)) / (1 + c * h / 2))


# BBK: half a step of explicit Euler, the drift, half a step of implicit Euler, with a draw of its own in each.
bbk = phase_sampler(_bbk)


def _partial_refresh(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = state
    a = jnp.exp(-h)
    r = a * r + jnp.sqrt(1 - a * a) * _normal(k1, r)
    r = r - h / 2 * estimator.estimate(k2, (), x)[0].gradient
    x = x + h * r
    return Phase(x, r - h / 2 * estimator.estimate(k3, (), x)[0].gradient)


# Leapfrog with partial refreshment (Horowitz without the Metropolis test): OBAB.
partial_refresh = phase_sampler(_partial_refresh)


def free_noise(key, x, t, c):
    """Noise (N_x, N_r) of dx = r dt, dr = -c r dt + sqrt(2 c) dW in the time t.

    Var N_r = 1 - e^2, N_x = (1 - e) / (c (1 + e)) N_r + an own part of variance (2 / c^2) (c t - 2 tanh(c t / 2)).
    """
    k1, k2 = jax.random.split(key)
    e = jnp.exp(-c * t)
    noise_r = jnp.sqrt(-jnp.expm1(-2 * c * t)) * _normal(k1, x)
    own = jnp.sqrt(jnp.maximum(2 / c**2 * (c * t - 2 * jnp.tanh(c * t / 2)), 0.0)) * _normal(k2, x)
    return -jnp.expm1(-c * t) / (c * (1 + e)) * noise_r + own, noise_r


def _free(key, x, r, t, c):
    noise_x, noise_r = free_noise(key, x, t, c)
    return x - jnp.expm1(-c * t) / c * r + noise_x, jnp.exp(-c * t) * r + noise_r


def _ubu(key, state, h, estimator, c=1.0):
    k1, k2, k3 = jax.random.split(key, 3)
    x, r = _free(k1, *state, h / 2, c)
    r = r - h * estimator.estimate(k2, (), x)[0].gradient
    return Phase(*_free(k3, x, r, h / 2, c))


# UBU: half of the exact force-free Langevin flow, a kick, the other half; weak order 2, exact without a force.
ubu = phase_sampler(
    _ubu,
    Claims(
        Source("sanzserna2021wasserstein", "UBU"),
        StationaryLaw(order=2),
        Diffusion(unit_friction, weak_order=2),
        ExactFreeMotion(),
        IndependentNoise(),
    ),
)


def _cheng(key, state, h, estimator, c=2.0):
    k1, k2 = jax.random.split(key)
    x, r = state
    g = estimator.estimate(k1, (), x)[0].gradient
    noise_x, noise_r = free_noise(k2, x, h, c)
    w = -jnp.expm1(-c * h) / c
    return Phase(x + w * r - (h - w) / c * g + noise_x, jnp.exp(-c * h) * r - w * g + noise_r)


# Cheng, Chatterji, Bartlett and Jordan: exact solution with the gradient frozen at the start of the step.
frozen_gradient = phase_sampler(_cheng)


def _shen_lee(key, state, h, estimator, c=2.0):
    k0, k1, k2, k3, k4 = jax.random.split(key, 5)
    x, r = state
    t = h * jax.random.uniform(k0, (), x.dtype)
    first_x, first_r = free_noise(k1, x, t, c)
    rest_x, rest_r = free_noise(k2, x, h - t, c)
    w = -jnp.expm1(-c * t) / c
    middle = x + w * r - (t - w) / c * estimator.estimate(k3, (), x)[0].gradient + first_x
    g = estimator.estimate(k4, (), middle)[0].gradient
    e, v = jnp.exp(-c * (h - t)), -jnp.expm1(-c * (h - t)) / c
    noise_x, noise_r = first_x + v * first_r + rest_x, e * first_r + rest_r
    return Phase(x - jnp.expm1(-c * h) / c * r - h * v * g + noise_x, jnp.exp(-c * h) * r - h * e * g + noise_r)


# Shen and Lee's randomised midpoint: the gradient at a uniform time of the step, on the same Brownian path.
randomised_midpoint = phase_sampler(_shen_lee)
