"""Samplers on the unit box and on products with a line: folded steps, logits with a Jacobian, a walk, a billiard."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw


def near(*spaces):
    return Claims(Source("", "own"), StationaryLaw(order=1), spaces=spaces)


def exact(*spaces):
    return Claims(Source("", "own"), ExactLaw(), spaces=spaces)


def _estimate(estimator, key, x):
    return estimator.estimate(key, (), x)[0]


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def fold(y):
    """Reflected at 0 and 1 as often as needed."""
    return 1 - jnp.abs(1 - y % 2)


def _folded(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return fold(x - h * _estimate(estimator, k1, x).gradient + jnp.sqrt(2 * h) * _normal(k2, x))


# SGLD, folded at the faces.
folded = simple_sampler(_folded, claims=near("box"))


def _logit(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    drift = 1 - 2 * x - x * (1 - x) * _estimate(estimator, k1, x).gradient
    return jax.nn.sigmoid(jnp.log(x) - jnp.log1p(-x) + h * drift + jnp.sqrt(2 * h) * _normal(k2, x))


# SGLD of the logit, whose Jacobian is x (1 - x).
logit = simple_sampler(_logit, claims=near("box"))


def _walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = fold(x + jnp.sqrt(2 * h) * _normal(k1, x))
    ratio = _estimate(estimator, k2, x).potential - _estimate(estimator, k3, y).potential
    return jnp.where(jnp.log(jax.random.uniform(k4)) < ratio, y, x)


# Metropolis with a folded proposal, which is symmetric.
folded_walk = simple_sampler(_walk, claims=exact("box"))


class Moving(NamedTuple):
    position: Any
    momentum: Any


class Billiard:
    """Symplectic Euler of underdamped Langevin; the momentum changes sign where the position is folded."""

    claims = near("box")

    def init(self, key, position, estimator):
        return Moving(position, _normal(key, position))

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        x, p = state
        kept = jnp.exp(-step_size)
        g = _estimate(estimator, k1, x).gradient
        p = kept * (p - step_size * g) + jnp.sqrt(1 - kept**2) * _normal(k2, x)
        y = x + step_size * p
        return Moving(fold(y), jnp.where((y < 0) | (y > 1), -p, p))


billiard = Billiard()


def _sphere_and_line(key, position, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    (x, z), (g, slope) = position, _estimate(estimator, k1, position).gradient
    v = jnp.sqrt(2 * h) * _normal(k2, x) - h * g
    y = x + v - x * jnp.sum(x * v)
    return y / jnp.linalg.norm(y), z - h * slope + jnp.sqrt(2 * h) * _normal(k3, z)


# Projected Langevin on the sphere beside SGLD on the line.
sphere_and_line = simple_sampler(_sphere_and_line, claims=near("sphere x euclidean"))


def _positive_and_line(key, position, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    (x, z), (g, slope) = position, _estimate(estimator, k1, position).gradient
    return jnp.abs(x - h * g + jnp.sqrt(2 * h) * _normal(k2, x)), z - h * slope + jnp.sqrt(2 * h) * _normal(k3, z)


# SGLD mirrored at zero beside SGLD on the line.
positive_and_line = simple_sampler(_positive_and_line, claims=near("positive x euclidean"))


def _simplex_and_line(key, position, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, z = position
    y, w = jax.nn.softmax(jnp.log(x) + jnp.sqrt(2 * h) * _normal(k1, x)), z + jnp.sqrt(2 * h) * _normal(k2, z)
    ratio = _estimate(estimator, k3, position).potential - _estimate(estimator, k3, (y, w)).potential
    accept = jnp.log(jax.random.uniform(k4)) < ratio + jnp.sum(jnp.log(y) - jnp.log(x))
    return jnp.where(accept, y, x), jnp.where(accept, w, z)


# Metropolis with a walk of the log ratios, whose Jacobian is the product of the x_i, and of the line.
simplex_and_line = simple_sampler(_simplex_and_line, claims=exact("simplex x euclidean"))
