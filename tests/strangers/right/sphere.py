"""Samplers on the unit sphere (points (n,), or rows of them), for densities with respect to surface measure:
projected and geodesic Langevin, geodesic BAOAB and HMC, walks, great-circle slices. Retraction by normalisation
and the exponential map agree to third order, and both carry the Ito drift -(n - 1) x of Brownian motion, so
that unadjusted ones err by O(h)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.dynamics.embedded import geodesic_overdamped
from sgmcmc_verification.samplers.estimators.host import estimator_key
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import (
    Claims,
    Composite,
    EmbeddedDiffusion,
    ExactLaw,
    Reversal,
    Source,
    StationaryLaw,
)

SPHERE = ("sphere",)
APPROXIMATE = Claims(Source("", "projected Langevin"), StationaryLaw(order=1), spaces=SPHERE)
EXACT = Claims(Source("", "Metropolis on the sphere"), ExactLaw(), spaces=SPHERE)


def tangent(x, u):
    """Projection of u on the tangent space at x."""
    return u - x * jnp.sum(x * u, axis=-1, keepdims=True)


def normalise(x):
    """x / |x|."""
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def geodesic(x, v, t):
    """Great circle from x with velocity v, for a time t."""
    speed = jnp.linalg.norm(v, axis=-1, keepdims=True)
    safe = jnp.maximum(speed, 1e-12)
    cos, sin = jnp.cos(speed * t), jnp.sin(speed * t)
    y = normalise(x * cos + v / safe * sin)
    return y, tangent(y, v * cos - x * speed * sin)


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _gradient(estimator, key, x):
    return tangent(x, estimator.estimate(key, (), x)[0].gradient)


def _energy(estimator, key, x):
    return estimator.estimate(key, (), x)[0].potential


def _projected(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return normalise(x - h * _gradient(estimator, k1, x) + jnp.sqrt(2 * h) * tangent(x, _normal(k2, x)))


# Tangent Euler step, then x / |x|.
projected_langevin = simple_sampler(_projected, claims=APPROXIMATE)

# The same with the equation claimed: overdamped Langevin on the manifold, weak order 1.
projected_claimed = simple_sampler(
    _projected,
    claims=Claims(
        Source("", "projected Langevin"),
        StationaryLaw(order=1),
        EmbeddedDiffusion(geodesic_overdamped, weak_order=1),
        spaces=SPHERE,
    ),
)


def _projected_signs(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    signs = jax.random.rademacher(k2, x.shape, x.dtype)
    return normalise(x + tangent(x, jnp.sqrt(2 * h) * signs) - h * _gradient(estimator, k1, x))


# The same with fair signs, projected: tangent covariance P, no third moment.
projected_signs = simple_sampler(_projected_signs, claims=APPROXIMATE)


def _exponential(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    move = jnp.sqrt(2 * h) * tangent(x, _normal(k2, x)) - h * _gradient(estimator, k1, x)
    return geodesic(x, move, 1.0)[0]


# Geodesic Langevin: the Euler step by the exponential map.
geodesic_langevin = simple_sampler(_exponential, claims=APPROXIMATE)


def _unprojected(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = estimator.estimate(k1, (), x)[0].gradient
    return normalise(x - h * tangent(x, g) + jnp.sqrt(2 * h) * _normal(k2, x))


# Full ambient noise, then x / |x|: the radial part of the noise changes the rest at order h^(3/2), odd in the noise.
ambient_noise = simple_sampler(_unprojected, claims=APPROXIMATE)


class Phase(NamedTuple):
    """Point and tangent velocity."""

    position: jax.Array
    velocity: jax.Array


def _baoab(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x, v = state
    v = v - h / 2 * _gradient(estimator, k1, x)
    x, v = geodesic(x, v, h / 2)
    a = jnp.exp(-h)
    v = a * v + jnp.sqrt(1 - a * a) * tangent(x, _normal(k2, x))
    x, v = geodesic(x, v, h / 2)
    return Phase(x, v - h / 2 * _gradient(estimator, k3, x))


# BAOAB with geodesics for A and tangent noise in O; every part keeps exp(-U - |v|^2 / 2) or errs by O(h^2).
geodesic_baoab = simple_sampler(
    _baoab,
    init=lambda key, position, estimator: Phase(position, tangent(position, _normal(key, position))),
    unpack=lambda s: s,
    pack=lambda key, z, estimator: Phase(*z),
    claims=Claims(Source("", "geodesic BAOAB"), StationaryLaw(order=2), spaces=SPHERE),
)


def _hmc(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    v = tangent(x, _normal(k1, x))

    def leapfrog(carry, key):
        y, w = carry
        a, b = jax.random.split(key)
        y, w = geodesic(y, w - h / 2 * _gradient(estimator, a, y), h)
        return (y, w - h / 2 * _gradient(estimator, b, y)), None

    (y, w), _ = jax.lax.scan(leapfrog, (x, v), jax.random.split(k2, 3))
    log_ratio = _energy(estimator, k3, x) - _energy(estimator, k4, y) + 0.5 * (jnp.sum(v * v) - jnp.sum(w * w))
    return jnp.where(jnp.log(jax.random.uniform(k5, dtype=x.dtype)) < log_ratio, y, x)


# Byrne and Girolami's geodesic HMC, three steps.
geodesic_hmc = simple_sampler(
    _hmc,
    needs=("gradient", "potential"),
    claims=Claims(Source("byrne2013geodesic", "section 3"), ExactLaw(), Composite(), spaces=SPHERE),
)


def _walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = normalise(x + jnp.sqrt(2 * h) * _normal(k1, x))
    ratio = jnp.exp(_energy(estimator, k2, x) - _energy(estimator, k3, y))
    return jnp.where(jax.random.uniform(k4, dtype=x.dtype) < ratio, y, x)


# Random walk: a normal step in the ambient space, normalised. Its density depends on x.y alone, so it is symmetric.
walk = simple_sampler(_walk, needs=("potential",), claims=EXACT)


def _geodesic_walk(key, x, h, estimator):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    y = geodesic(x, jnp.sqrt(2 * h) * tangent(x, _normal(k1, x)), 1.0)[0]
    log_ratio = _energy(estimator, k2, x) - _energy(estimator, k3, y)
    return jnp.where(-jax.random.exponential(k4, dtype=x.dtype) < log_ratio, y, x)


# Random walk along geodesics with a normal tangent velocity: symmetric, reversible.
geodesic_walk = simple_sampler(
    _geodesic_walk,
    needs=("potential",),
    claims=Claims(Source("", "geodesic walk"), ExactLaw(), Reversal(lambda z: z), spaces=SPHERE),
)


def _slice(key, x, h, estimator):
    k1, k2, k3, k4, k5 = jax.random.split(key, 5)
    u = normalise(tangent(x, _normal(k1, x)))
    level = -_energy(estimator, k2, x) - jax.random.exponential(k3, dtype=x.dtype)
    width = jnp.minimum(2 * jnp.pi, 8 * jnp.sqrt(h)).astype(x.dtype)
    low = -width * jax.random.uniform(k4, (), x.dtype)

    def shrink(carry):
        key, low, high, _, _ = carry
        key, angle_key, energy_key = jax.random.split(key, 3)
        angle = jax.random.uniform(angle_key, (), x.dtype, low, high)
        y = normalise(x * jnp.cos(angle) + u * jnp.sin(angle))
        inside = -_energy(estimator, energy_key, y) > level
        return key, jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle), y, inside

    start = (k5, low, low + width, x, jnp.array(False))
    return jax.lax.while_loop(lambda carry: ~carry[4], shrink, start)[3]


# Geodesic slice sampling: a uniform great circle through x, shrinkage on a bracket of angles of random place
# around 0.
great_circle_slice = simple_sampler(_slice, needs=("potential",), claims=EXACT)


def any_manifold_walk(target):
    """Metropolis walk along the geodesics of the target's manifold, any of them: the geodesic flow is reversible."""
    manifold = target.manifold

    def step(key, x, h, estimator):
        k1, k2, k3, k4 = jax.random.split(key, 4)
        leaves, structure = jax.tree.flatten(x)
        keys = jax.random.split(k1, len(leaves))
        v = structure.unflatten([jnp.sqrt(2 * h) * _normal(k, leaf) for k, leaf in zip(keys, leaves, strict=True)])
        y = manifold.project_roundoff(manifold.geodesic(x, manifold.tangent(x, v), 1.0)[0])
        log_ratio = _energy(estimator, k2, x) - _energy(estimator, k3, y)
        accept = jnp.log(jax.random.uniform(k4, dtype=leaves[0].dtype)) < log_ratio
        return jax.tree.map(lambda new, old: jnp.where(accept, new, old), y, x)

    spaces = ("euclidean", "positive", "sphere", "simplex", "stiefel", "product")
    return simple_sampler(
        step, needs=("potential",), claims=Claims(Source("", "geodesic walk"), ExactLaw(), spaces=spaces)
    )


def _host_walk(rng, x, step_size, estimator):
    x = np.asarray(x)
    y = x + np.sqrt(2 * step_size) * rng.standard_normal(x.shape)
    y = (y / np.linalg.norm(y, axis=-1, keepdims=True)).astype(x.dtype)
    U, V = (float(estimator.estimate(estimator_key(rng, estimator), (), z)[0].potential) for z in (x, y))
    return y if np.log(rng.random()) < U - V else x


# The walk in NumPy.
host_walk = simple_sampler(_host_walk, needs=("potential",), backend="host", claims=EXACT)
