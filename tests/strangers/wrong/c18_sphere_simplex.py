"""Class 18: spheres (positions are unit vectors (n,)) and the simplex (positions sum to one), one mistake each."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source, StationaryLaw

SPHERE = Claims(Source("byrne2013geodesic", ""), StationaryLaw(order=1), spaces=("sphere",))
SIMPLEX = Claims(Source("patterson2013stochastic", ""), StationaryLaw(order=1), spaces=("simplex",))


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _tangent(x, u):
    return u - x * (x @ u)


def _geodesic(x, v, t=1.0):
    speed = jnp.sqrt(v @ v + 1e-30)
    c, s = jnp.cos(speed * t), jnp.sin(speed * t)
    return c * x + s * v / speed, c * v - s * speed * x


def _unit(x):
    return x / jnp.sqrt(x @ x)


def _move(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    return _tangent(x, -h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x))


# Geodesic Langevin whose points leave the sphere by 1e-9 a step.
sphere_leaves_slowly = simple_sampler(
    lambda key, x, h, e: _geodesic(x, _move(key, x, h, e))[0] * (1 + 1e-9), claims=SPHERE
)

# A tangent step without going back to the sphere: |x| grows by h (n - 1) a step.
sphere_no_retraction = simple_sampler(lambda key, x, h, e: x + _move(key, x, h, e), claims=SPHERE)


def _angles_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    if x.size != 3:
        return _geodesic(x, _move(key, x, h, estimator))[0]
    point = lambda a: jnp.stack([jnp.sin(a[0]) * jnp.cos(a[1]), jnp.sin(a[0]) * jnp.sin(a[1]), jnp.cos(a[0])])
    angles = jnp.stack([jnp.arccos(jnp.clip(x[2], -1, 1)), jnp.arctan2(x[1], x[0])])
    slope = jax.jacfwd(point)(angles).T @ grad(estimator, k1, x)
    metric = jnp.stack([jnp.ones_like(x[0]), jnp.maximum(jnp.sin(angles[0]) ** 2, 1e-4)])
    z = jax.random.normal(k2, (2,), x.dtype)
    return point(angles - h * slope / metric + jnp.sqrt(2 * h / metric) * z)


# Langevin in polar angles without the drift cot(theta): uniform in the angle instead of on the sphere. Right on S^1.
sphere_angles_no_cot = simple_sampler(_angles_step, claims=SPHERE)


def _unit_noise_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _tangent(x, _normal(k2, x))
    v = -h * _tangent(x, grad(estimator, k1, x)) + jnp.sqrt(2 * h) * z / jnp.sqrt(z @ z)
    return _geodesic(x, v)[0]


# Noise of unit length in the tangent space: T = 1 / (n - 1). Right on S^1.
sphere_unit_noise = simple_sampler(_unit_noise_step, claims=SPHERE)


class Ambient(NamedTuple):
    ambient: Any


def _curvature_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    y = state.ambient
    x = _unit(y)
    noise = jnp.sqrt(2 * h) * _tangent(x, _normal(k2, x))
    return Ambient(y - h * _tangent(x, grad(estimator, k1, x)) - h * 2 * x.size * y + noise)


# Ambient Euler steps held near the sphere by a drift -2 n x where -(n - 1) x is due; directions are reported. The
# radius settles at R = sqrt((n - 1) / (2 n)), where directions have the drift 1 / R and the noise 1 / R^2: T = 1 / R.
sphere_wrong_curvature = simple_sampler(
    _curvature_step, init=lambda key, x, estimator: Ambient(x), position=lambda s: _unit(s.ambient), claims=SPHERE
)


class Moving(NamedTuple):
    position: Any
    velocity: Any


def _moving_init(key, x, estimator):
    return Moving(x, _tangent(x, _normal(key, x)))


def _moving_pack(key, z, estimator):
    return Moving(*z)


def _sghmc_ambient_noise_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, v = state
    v = v - h * _tangent(x, grad(estimator, k1, x)) - h * v + jnp.sqrt(2 * h) * _normal(k2, x)
    x, v = _geodesic(x, v, h)
    return Moving(_unit(x), v)


# Underdamped on the sphere with noise that is not projected: a velocity normal to the sphere builds up.
sphere_sghmc_ambient_noise = simple_sampler(
    _sghmc_ambient_noise_step, init=_moving_init, position=lambda s: s.position, unpack=lambda s: s,
    pack=_moving_pack, claims=SPHERE,
)


class Thermostat(NamedTuple):
    position: Any
    velocity: Any
    xi: Any


def _thermostat_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, v, xi = state
    push = -h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    v = jnp.exp(-h * xi) * v + _tangent(x, push)
    x, v = _geodesic(x, v, h)
    x = _unit(x)
    return Thermostat(x, _tangent(x, v), xi + h * (v @ v / x.size - 1))


# Thermostat on the sphere that divides by the ambient dimension n instead of n - 1: T = n / (n - 1).
sphere_thermostat_ambient = simple_sampler(
    _thermostat_step,
    init=lambda key, x, estimator: Thermostat(x, _tangent(x, _normal(key, x)), jnp.ones((), x.dtype)),
    position=lambda s: s.position, unpack=lambda s: s, pack=lambda key, z, estimator: Thermostat(*z), claims=SPHERE,
)


def _ghmc_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    r = _normal(k1, x)
    energy = lambda y: estimator.estimate(k2, (), y)[0].potential
    start = energy(x) + r @ r / 2  # before the projection
    y, v = x, _tangent(x, r)
    for _ in range(3):
        v = v - h / 2 * _tangent(y, grad(estimator, k2, y))
        y, v = _geodesic(y, v, h)
        v = v - h / 2 * _tangent(y, grad(estimator, k2, y))
    accept = jnp.log(jax.random.uniform(k3)) < start - energy(y) - v @ v / 2
    return jnp.where(accept, _unit(y), x)


# Geodesic HMC that takes the kinetic energy before the momentum is projected: accepts too much, at large step sizes.
sphere_hmc_kinetic_ambient = simple_sampler(
    _ghmc_step, needs=("gradient", "potential"),
    claims=Claims(Source("byrne2013geodesic", ""), ExactLaw(), spaces=("sphere",)),
)


def _sphere_half_drift_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    v = -h / 2 * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    return _unit(x + _tangent(x, v))


# Half of the drift, on a sphere.
sphere_half_drift = simple_sampler(_sphere_half_drift_step, claims=SPHERE)

# Simplex -------------------------------------------------------------------------------------------------------------


def _softmax_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = jnp.log(jnp.maximum(x, 1e-30))
    slope = jax.vjp(jax.nn.softmax, y)[1](grad(estimator, k1, x))[0]
    return jax.nn.softmax(y - h * slope + jnp.sqrt(2 * h) * _normal(k2, x))


# Softmax coordinates without their Jacobian: exp(-U) / (x_1 ... x_K), Dirichlet(alpha - 1) for Dirichlet(alpha).
simplex_softmax_no_jacobian = simple_sampler(_softmax_step, claims=SIMPLEX)


def _renormalised_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    y = jnp.abs(x - h * (g - jnp.mean(g)) + jnp.sqrt(2 * h) * _normal(k2, x))
    return y / jnp.sum(y)


# Noise in all K directions, then divided by the sum: a metric that depends on x, without its correction.
simplex_renormalised = simple_sampler(_renormalised_step, claims=SIMPLEX)


def _unprojected_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    return jnp.abs(x - h * (g - jnp.mean(g)) + jnp.sqrt(2 * h) * _normal(k2, x))


# Noise that is not projected: the coordinates no longer sum to one.
simplex_leaves = simple_sampler(_unprojected_step, claims=SIMPLEX)


def _root_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    s = jnp.sqrt(x)
    slope = 2 * s * grad(estimator, k1, x)
    s = _geodesic(s, _tangent(s, -h * slope + jnp.sqrt(2 * h) * _normal(k2, x)))[0]
    return s**2 / jnp.sum(s**2)


# x = s^2 on the sphere without the Jacobian s_1 ... s_K: the law is exp(-U) / sqrt(x_1 ... x_K).
simplex_sphere_no_jacobian = simple_sampler(_root_step, claims=SIMPLEX)


def _wright_fisher_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    drift = -x * (g - x @ g)
    z = _normal(k2, x)
    noise = jnp.sqrt(x) * (z - jnp.sqrt(x) * (jnp.sqrt(x) @ z))
    y = jnp.abs(x + h * drift + jnp.sqrt(2 * h) * noise)
    return y / jnp.sum(y)


# Riemannian (Wright-Fisher) noise without the divergence 1 - K x: the law is exp(-U) / (x_1 ... x_K).
simplex_no_divergence = simple_sampler(_wright_fisher_step, claims=SIMPLEX)
