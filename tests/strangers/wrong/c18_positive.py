"""Class 18: positive numbers, x > 0. The mistakes are at the boundary, or in a transformation."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw

POSITIVE = Claims(Source("patterson2013stochastic", ""), StationaryLaw(order=1), spaces=("positive",))


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _langevin(after):
    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return after(x - h * grad(estimator, k1, x), jnp.sqrt(2 * h) * _normal(k2, x))

    return simple_sampler(step, claims=POSITIVE)


# Clipped at 1e-10 instead of reflected: an atom at 1e-10 of mass O(sqrt h) where the density does not vanish at 0.
positive_clip = _langevin(lambda moved, noise: jnp.maximum(moved + noise, 1e-10))

# Clipped at 0.05 ("keep away from zero").
positive_clip_005 = _langevin(lambda moved, noise: jnp.maximum(moved + noise, 0.05))

# No mirror: the chain walks into the negative numbers.
positive_no_mirror = _langevin(lambda moved, noise: moved + noise)

# The absolute value of the drift only: the noise is added afterwards.
positive_abs_drift = _langevin(lambda moved, noise: jnp.abs(moved) + noise)

# Mirror at 0.05 instead of 0: the part of the law below is missing.
positive_mirror_005 = _langevin(lambda moved, noise: 0.05 + jnp.abs(moved + noise - 0.05))


def _stay_positive(moved, noise):
    return jnp.where(moved + noise > 0, moved + noise, jnp.maximum(moved - noise, 1e-6) + 1.0)


# What falls below zero is put back into the bulk, at 1 or more, instead of being reflected.
positive_restart = _langevin(_stay_positive)


def _log_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return jnp.exp(jnp.log(x) - h * x * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x))


# SGLD in log x without the Jacobian: the law is exp(-U) / x, Gamma(a - 1) for Gamma(a).
positive_log_no_jacobian = simple_sampler(_log_step, claims=POSITIVE)


def _softplus_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = x + jnp.log(-jnp.expm1(-x))
    y = y - h * jax.nn.sigmoid(y) * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return jax.nn.softplus(y)


# SGLD in the softplus coordinate without the Jacobian: the law is exp(-U) / (1 - exp(-x)).
positive_softplus_no_jacobian = simple_sampler(_softplus_step, claims=POSITIVE)


def _square_root_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return jnp.abs(x - h * x * grad(estimator, k1, x) + jnp.sqrt(2 * h * x) * _normal(k2, x))


# Riemannian SGLD with the metric 1 / x and without Gamma = 1: the law is exp(-U) / x.
positive_sgrld_no_gamma = simple_sampler(_square_root_step, claims=POSITIVE)


def _gamma_twice_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return jnp.abs(x - h * x * grad(estimator, k1, x) + 2 * h + jnp.sqrt(2 * h * x) * _normal(k2, x))


# The same with Gamma = 2: the law is x exp(-U).
positive_sgrld_gamma_twice = simple_sampler(_gamma_twice_step, claims=POSITIVE)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _sghmc_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    r = r - h * grad(estimator, k1, x) - h * r + jnp.sqrt(2 * h) * _normal(k2, x)
    return Phase(jnp.abs(x + h * r), r)


# SGHMC that mirrors the position and not the momentum: after a reflection it still runs at the wall.
positive_sghmc_no_flip = simple_sampler(
    _sghmc_step, init=lambda key, x, estimator: Phase(x, _normal(key, x)), position=lambda s: s.position,
    unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z), claims=POSITIVE,
)


def _rwm_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = x * jnp.exp(jnp.sqrt(2 * h) * _normal(k1, x))
    energy = lambda y: estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < energy(x) - energy(y)
    return jnp.where(accept, y, x)


# Multiplicative random walk Metropolis without the factor y / x: the law is exp(-U) / x.
positive_rwm_no_jacobian = simple_sampler(
    _rwm_step, needs=("potential",), claims=Claims(Source("", "log-normal walk"), ExactLaw(), spaces=("positive",))
)
