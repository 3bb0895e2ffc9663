"""Riemannian Langevin steps on positive numbers, and a geodesic thermostat on a sphere."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, Source, StationaryLaw


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _riemannian(natural):
    """Steps of dx = (natural(x, -grad U) + 1) dt + sqrt(2 x) dW, mirrored at zero: the metric is 1 / x, Gamma is 1."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        score = -estimator.estimate(k1, (), x)[0].gradient
        return jnp.abs(x + h * (natural(x, score) + 1) + jnp.sqrt(2 * x * h) * _normal(k2, x))

    claims = Claims(Source("", "SGRLD, expanded mean, natural metric"), StationaryLaw(order=1), spaces=("positive",))
    return simple_sampler(step, claims=claims)


# The gradient is natural already when it is multiplied by x.
scir_sgrld_before = _riemannian(lambda x, score: x * (x * score))
scir_sgrld_after = _riemannian(lambda x, score: x * score)


class Thermal(NamedTuple):
    """Point of a sphere, tangent velocity, friction."""

    position: Any
    velocity: Any
    friction: Any


def _tangent(x, u):
    return u - x * jnp.sum(x * u, axis=-1, keepdims=True)


def _geodesic(x, v, t):
    """Great circle from x with the velocity v, for a time t."""
    speed = jnp.linalg.norm(v, axis=-1, keepdims=True)
    cos, sin = jnp.cos(speed * t), jnp.sin(speed * t)
    y = x * cos + v / jnp.maximum(speed, 1e-12) * sin
    y = y / jnp.linalg.norm(y, axis=-1, keepdims=True)
    return y, _tangent(y, v * cos - x * speed * sin)


def _thermostat(dimension):
    """Geodesic SGNHT, whose friction is driven by |v|^2 / dimension(x) - 1."""

    def step(key, state, h, estimator):
        k1, k2 = jax.random.split(key)
        x, v = _geodesic(state.position, state.velocity, h / 2)
        excess = lambda u: jnp.sum(u**2) / dimension(x) - 1
        xi = state.friction + h / 2 * excess(v)
        damper = jnp.exp(-xi * h / 2)
        v = damper * v - h * estimator.estimate(k1, (), x)[0].gradient + jnp.sqrt(2 * h) * _normal(k2, x)
        v = _tangent(x, damper * v)
        x, v = _geodesic(x, v, h / 2)
        return Thermal(x, v, xi + h / 2 * excess(v))

    return simple_sampler(
        step,
        init=lambda key, x, estimator: Thermal(x, _tangent(x, _normal(key, x)), jnp.ones((), x.dtype)),
        position=lambda state: state.position,
        unpack=lambda state: state,
        pack=lambda key, z, estimator: Thermal(*z),
        claims=Claims(Source("", "gSGNHT"), StationaryLaw(order=1), spaces=("sphere",)),
    )


# The number of coordinates in place of the dimension of the sphere.
sg_geod_mcmc_gsgnht_before = _thermostat(lambda x: x.size)
sg_geod_mcmc_gsgnht_after = _thermostat(lambda x: x.size - x.size // x.shape[-1])
