"""Class 30: boxes and products with a line. The mistakes are at a face, in a Jacobian, or in one factor."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw


def near(*spaces):
    return Claims(Source("", "own"), StationaryLaw(order=1), spaces=spaces)


def _estimate(estimator, key, x):
    return estimator.estimate(key, (), x)[0]


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _langevin(end):
    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return end(x - h * _estimate(estimator, k1, x).gradient + jnp.sqrt(2 * h) * _normal(k2, x))

    return simple_sampler(step, claims=near("box"))


# Clipped to the box: mass of O(sqrt h) on the faces.
box_clip = _langevin(lambda y: jnp.clip(y, 0, 1))

# What leaves through one face comes in through the other.
box_torus = _langevin(lambda y: y % 1)


def _redrawn(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    mean, scale = x - h * _estimate(estimator, k1, x).gradient, jnp.sqrt(2 * h)
    return mean + scale * jax.random.truncated_normal(k2, -mean / scale, (1 - mean) / scale, x.shape, x.dtype)


# The noise is drawn until the step stays in the box: near a face the law is that of the box times the share that stays.
box_redrawn = simple_sampler(_redrawn, claims=near("box"))


def _logit(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    drift = -x * (1 - x) * _estimate(estimator, k1, x).gradient
    return jax.nn.sigmoid(jnp.log(x) - jnp.log1p(-x) + h * drift + jnp.sqrt(2 * h) * _normal(k2, x))


# SGLD of the logit without the Jacobian: the law is exp(-U) / (x (1 - x)), which has no finite mass.
box_logit_no_jacobian = simple_sampler(_logit, claims=near("box"))


class Moving(NamedTuple):
    position: Any
    momentum: Any


class Unflipped:
    """The position is folded at a face, and the momentum keeps its sign: it pushes on against the face."""

    claims = near("box")

    def init(self, key, position, estimator):
        return Moving(position, _normal(key, position))

    def step(self, key, state, step_size, estimator):
        k1, k2 = jax.random.split(key)
        x, p = state
        kept = jnp.exp(-step_size)
        g = _estimate(estimator, k1, x).gradient
        p = kept * (p - step_size * g) + jnp.sqrt(1 - kept**2) * _normal(k2, x)
        return Moving(1 - jnp.abs(1 - (x + step_size * p) % 2), p)


box_unflipped = Unflipped()


def _cold_line(key, position, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    (x, z), (g, slope) = position, _estimate(estimator, k1, position).gradient
    v = jnp.sqrt(2 * h) * _normal(k2, x) - h * g
    y = x + v - x * jnp.sum(x * v)
    return y / jnp.linalg.norm(y), z - h * slope + jnp.sqrt(h) * _normal(k3, z)


# Half of the noise is missing on the line.
sphere_cold_line = simple_sampler(_cold_line, claims=near("sphere x euclidean"))


def _ratio_walk(key, position, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    x, z = position
    y, w = jax.nn.softmax(jnp.log(x) + jnp.sqrt(2 * h) * _normal(k1, x)), z + jnp.sqrt(2 * h) * _normal(k2, z)
    ratio = _estimate(estimator, k3, position).potential - _estimate(estimator, k3, (y, w)).potential
    accept = jnp.log(jax.random.uniform(k4)) < ratio
    return jnp.where(accept, y, x), jnp.where(accept, w, z)


# A walk of the log ratios without its Jacobian: the law of the simplex is Dirichlet(alpha - 1).
simplex_no_jacobian_line = simple_sampler(
    _ratio_walk, claims=Claims(Source("", "own"), ExactLaw(), spaces=("simplex x euclidean",))
)
