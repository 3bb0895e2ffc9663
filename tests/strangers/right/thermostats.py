"""Nose-Hoover thermostats with stochastic gradients (SGNHT): a scalar friction, one per coordinate, the symmetric
splitting of Chen et al., BADODAB with exact friction. Law exp(-U - |r|^2 / 2 - mu (xi - A)^2 / 2), mu = d for a
scalar xi that is driven by |r|^2 / d - 1 and 1 for one per coordinate; first order schemes err by O(h),
symmetric ones by O(h^2)."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.thermostats.common import thermostat_dynamics
from sgmcmc_verification.samplers.types import Claims, Diffusion, Source, StationaryLaw


class Thermostat(NamedTuple):
    """Position, momentum and friction."""

    position: jax.Array
    momentum: jax.Array
    xi: jax.Array


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _thermostat_sampler(step, init_xi, claims=None):
    return simple_sampler(
        step,
        init=lambda key, position, estimator: Thermostat(position, _normal(key, position), init_xi(position)),
        unpack=lambda s: s,
        pack=lambda key, z, estimator: Thermostat(*z),
        claims=claims,
    )


A = 1.0


def _sgnht(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = state
    g = estimator.estimate(k1, (), x)[0].gradient
    r = r - h * g - h * xi * r + jnp.sqrt(2 * A * h) * _normal(k2, r)
    return Thermostat(x + h * r, r, xi + h * (jnp.mean(r * r) - 1))


# Ding et al.'s SGNHT, scalar friction, Euler.
sgnht = _thermostat_sampler(_sgnht, lambda x: jnp.full((), A, x.dtype))

# The same with its equation claimed.
sgnht_claimed = _thermostat_sampler(
    _sgnht,
    lambda x: jnp.full((), A, x.dtype),
    Claims(
        Source("ding2014bayesian", "Algorithm 2"),
        StationaryLaw(order=1),
        Diffusion(lambda target: thermostat_dynamics(target, A), weak_order=1),
    ),
)

# The same again, with `init` and `position` alone: the state is more than is unpacked.
sgnht_bare = simple_sampler(
    lambda key, s, h, estimator: tuple(_sgnht(key, s, h, estimator)),
    init=lambda key, position, estimator: (position, jnp.zeros_like(position), jnp.full((), A, position.dtype)),
    position=lambda s: s[0],
)


def _vector_sgnht(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), state["theta"])[0].gradient
    noise = jnp.sqrt(2 * 1.5 * h) * jax.random.normal(k2, g.shape, g.dtype)
    p = state["p"] - h * g - h * state["xi"] * state["p"] + noise
    return {"p": p, "theta": state["theta"] + h * p, "xi": state["xi"] + h * (p * p - 1)}


# One friction per coordinate, A = 3/2, Euler, the state a dict.
vector_sgnht = simple_sampler(
    _vector_sgnht,
    init=lambda key, position, estimator: {
        "p": _normal(key, position),
        "theta": position,
        "xi": jnp.full_like(position, 1.5),
    },
    position=lambda s: s["theta"],
    unpack=lambda s: s,
    pack=lambda key, z, estimator: z,
)


def _symmetric(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r, xi = state
    x, xi = x + h / 2 * r, xi + h / 2 * (jnp.mean(r * r) - 1)
    r = jnp.exp(-xi * h / 2) * r
    r = r - h * estimator.estimate(k1, (), x)[0].gradient + jnp.sqrt(2 * A * h) * _normal(k2, r)
    r = jnp.exp(-xi * h / 2) * r
    return Thermostat(x + h / 2 * r, r, xi + h / 2 * (jnp.mean(r * r) - 1))


# Chen, Ding and Carin's symmetric splitting, second order.
symmetric = _thermostat_sampler(
    _symmetric,
    lambda x: jnp.ones((), x.dtype),
    Claims(Source("chen2015convergence", "symmetric splitting"), StationaryLaw(order=2)),
)


@dataclass(frozen=True)
class BADODAB:
    """B A D O D A B with O the exact Ornstein-Uhlenbeck flow of friction xi of any sign; second order."""

    noise: float = 1.0
    thermal_mass: float = 2.0

    claims = Claims(Source("leimkuhler2016adaptive", "BADODAB"), StationaryLaw(order=2))

    def init(self, key, position, estimator):
        return Thermostat(position, _normal(key, position), jnp.full((), self.noise, position.dtype))

    def step(self, key, state, step_size, estimator):
        k1, k2, k3 = jax.random.split(key, 3)
        h, mu = step_size, self.thermal_mass
        x, r, xi = state
        r = r - h / 2 * estimator.estimate(k1, (), x)[0].gradient
        x = x + h / 2 * r
        xi = xi + h / 2 * (r @ r - r.size) / mu
        y = 2 * xi * h
        small = jnp.abs(y) < 1e-3
        ratio = jnp.where(small, 1 - y / 2 + y * y / 6, -jnp.expm1(-y) / jnp.where(small, 1.0, y))
        r = jnp.exp(-y / 2) * r + jnp.sqrt(2 * self.noise * h * ratio) * _normal(k2, r)
        xi = xi + h / 2 * (r @ r - r.size) / mu
        x = x + h / 2 * r
        return Thermostat(x, r - h / 2 * estimator.estimate(k3, (), x)[0].gradient, xi)

    def position(self, state):
        return state.position

    def unpack(self, state):
        return state

    def pack(self, key, z, estimator):
        return Thermostat(*z)
