"""Samplers on constrained spaces: positive numbers (two of them), the sphere, the simplex."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, StationaryLaw, simple_sampler

# Positive numbers, exact: a random walk of log x; the proposal density ratio is prod y / x. -------------------------


class LogRandomWalk:
    backend = "host"
    claims = Claims(Source("", "own"), ExactLaw(), spaces=("positive",))

    def init(self, rng, position, estimator):
        x = np.array(position)
        return {"position": x, "energy": float(estimator.estimate(rng, (), x)[0].potential)}

    def step(self, rng, state, h, estimator):
        x = state["position"]
        log_step = rng.normal(scale=math.sqrt(2 * h), size=x.shape)
        y = x * np.exp(log_step)
        energy = float(estimator.estimate(rng, (), y)[0].potential)
        log_ratio = state["energy"] - energy + log_step.sum()
        if math.isfinite(energy) and math.log(max(rng.random(), 1e-300)) < log_ratio:
            return {"position": y, "energy": energy}
        return state


# Positive numbers, unadjusted: Langevin in y, x = softplus(y). ------------------------------------------------------


def inverse_softplus(x):
    return x + jnp.log(-jnp.expm1(-x))


def softplus_langevin_step(key, x, h, estimator):
    """V(y) = U(softplus y) - log sigmoid y; sigmoid y = 1 - exp(-x), so V' = U' (1 - exp(-x)) - exp(-x)."""
    key_grad, key_noise = jax.random.split(key)
    g = estimator.estimate(key_grad, (), x)[0].gradient
    slope = -g * jnp.expm1(-x) - jnp.exp(-x)
    y = inverse_softplus(x) - h * slope + jnp.sqrt(2 * h) * jax.random.normal(key_noise, x.shape, x.dtype)
    return jax.nn.softplus(y)


softplus_langevin = simple_sampler(
    softplus_langevin_step, claims=Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
)


# Sphere: geodesic OBABO. --------------------------------------------------------------------------------------------


class SphereState(NamedTuple):
    position: jax.Array
    velocity: jax.Array


def tangent(x, v):
    return v - jnp.dot(x, v) * x


class SphericalLangevin:
    claims = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("sphere",))

    def __init__(self, friction=1.0):
        if friction <= 0:
            raise ValueError("friction must be positive")
        self.friction = friction

    def init(self, key, position, estimator):
        return SphereState(position, tangent(position, jax.random.normal(key, position.shape, position.dtype)))

    def step(self, key, state, h, estimator):
        k_first, k_last, k_g1, k_g2 = jax.random.split(key, 4)
        keep = jnp.exp(-self.friction * h / 2)
        spread = jnp.sqrt(-jnp.expm1(-self.friction * h))

        def refresh(k, x, v):
            return keep * v + spread * tangent(x, jax.random.normal(k, v.shape, v.dtype))

        def kick(k, x, v):
            return v - h / 2 * tangent(x, estimator.estimate(k, (), x)[0].gradient)

        x, v = state
        v = kick(k_g1, x, refresh(k_first, x, v))
        speed = jnp.linalg.norm(v)
        x, v = (
            jnp.cos(speed * h) * x + h * jnp.sinc(speed * h / jnp.pi) * v,
            jnp.cos(speed * h) * v - speed * jnp.sin(speed * h) * x,
        )
        x = x / jnp.linalg.norm(x)  # rounding only
        v = refresh(k_last, x, kick(k_g2, x, tangent(x, v)))
        return SphereState(x, v)


# Simplex, exact: mass goes from one coordinate to another. ----------------------------------------------------------


def transfer_step(rng, x, h, estimator):
    def U(q):
        return float(estimator.estimate(rng, (), q)[0].potential)

    x, width = np.array(x), math.sqrt(6.0 * h)
    K, here = x.size, U(x)
    for i in range(K):
        j = (i + int(rng.integers(1, K))) % K
        delta = rng.uniform(-width, width)
        if x[i] + delta <= 0 or x[j] - delta <= 0:
            continue  # outside
        y = x.copy()
        y[i] += delta
        y[j] -= delta
        y /= y.sum()  # rounding only
        there = U(y)
        if here - there > math.log1p(-rng.random()):
            x, here = y, there
    return x


mass_transfer = simple_sampler(
    transfer_step, backend="host", claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex",))
)
