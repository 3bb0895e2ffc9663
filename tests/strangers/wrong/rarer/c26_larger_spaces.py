"""Class 26: particles, spheres, positive vectors and the simplex where they are larger than the smallest case."""


import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.particles.common import flatten, unflatten
from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, ParticleLaw, Source, StationaryLaw

SVGD = Claims(Source("liu2016stein", "Algorithm 1"), ParticleLaw())
SPHERE = Claims(Source("byrne2013geodesic", ""), StationaryLaw(order=1), spaces=("sphere",))
POSITIVE = Claims(Source("", "own"), StationaryLaw(order=1), spaces=("positive",))
SIMPLEX = Claims(Source("patterson2013stochastic", ""), StationaryLaw(order=1), spaces=("simplex",))
WIDTH = 0.5


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _normal(key, x):
    return jax.random.normal(key, x.shape, x.dtype)


def _particles(velocity):
    def step(key, position, h, estimator):
        x = flatten(position)
        g = flatten(jax.vmap(lambda y: estimator.estimate(key, (), y)[0].gradient)(position))
        return unflatten(position)(x + h * velocity(x, g))

    return simple_sampler(step, init=lambda key, x, estimator: x, claims=SVGD)


def _stein(x, g, repulsion=1.0, rows=None):
    difference = x[:, None, :] - x[None, :, :]
    K = jnp.exp(-jnp.sum(difference**2, -1) / (2 * WIDTH))
    near = K if rows is None else jnp.where(jnp.arange(len(x))[None, :] < rows, K, 0.0)
    return (-K @ g + repulsion * jnp.sum(near[:, :, None] * difference, 1) / WIDTH) / len(x)


# SVGD that repels in the first two coordinates alone. Right in the plane.
svgd_two_coordinates = _particles(lambda x, g: _stein(x, g, (jnp.arange(x.shape[1]) < 2).astype(x.dtype)))

# SVGD in which only the first 64 particles repel.
svgd_64_repel = _particles(lambda x, g: _stein(x, g, rows=64))

# SVGD whose repulsion is divided by d (a bandwidth that was meant to grow with d). Right on the line.
svgd_over_d = _particles(lambda x, g: _stein(x, g, 1.0 / x.shape[1]))


def _tangent(x, u):
    return u - x * (x @ u)


def _geodesic(x, v):
    speed = jnp.sqrt(v @ v + 1e-30)
    return jnp.cos(speed) * x + jnp.sin(speed) * v / speed


def _two_degrees_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = _tangent(x, _normal(k2, x))
    z = z * jnp.sqrt(2 / (z @ z))
    return _geodesic(x, _tangent(x, -h * grad(estimator, k1, x)) + jnp.sqrt(2 * h) * z)


# Noise of the length sqrt(2) in the tangent space: right on S^2 (two degrees of freedom), T = 2 / (n - 1) elsewhere.
sphere_two_degrees = simple_sampler(_two_degrees_step, claims=SPHERE)


def _cross_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    if x.size == 3:
        v = _tangent(x, -h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x))
    else:
        v = _tangent(x, -h * grad(estimator, k1, x) + jnp.sqrt(h) * _normal(k2, x))
    return _geodesic(x, v)


# A branch for S^2 (with a cross product once) and another one for all other spheres, in which the noise is sqrt(h).
sphere_other_branch = simple_sampler(_cross_step, claims=SPHERE)


def _mirror_first_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    y = x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * _normal(k2, x)
    flat = y.ravel()
    return jnp.abs(flat).at[1:].set(flat[1:]).reshape(y.shape)


# The mirror at 0 is there for the first coordinate alone.
positive_mirror_first = simple_sampler(_mirror_first_step, claims=POSITIVE)


def _positive_shared_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = jax.random.normal(k2, (), x.dtype)
    return jnp.abs(x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z)


# One normal for all coordinates of a positive vector. Right for one number.
positive_shared_noise = simple_sampler(_positive_shared_step, claims=POSITIVE)


def _log_mean_step(key, x, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    y = x * jnp.exp(jnp.sqrt(2 * h) * _normal(k2, x))
    u = lambda a: estimator.estimate(k1, (), a)[0].potential
    ratio = u(x) - u(y) + jnp.mean(jnp.log(y) - jnp.log(x))
    return jnp.where(jnp.log(jax.random.uniform(k3)) < ratio, y, x)


# Multiplicative random walk Metropolis with the mean of log(y / x) in place of its sum. Right for one number.
positive_jacobian_mean = simple_sampler(
    _log_mean_step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("positive",))
)


def _three_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    z = _normal(k2, x)
    root = jnp.sqrt(x)
    drift = -(x * g - x * (x @ g)) + (1 - 3 * x)
    noise = root * z - x * (root @ z)
    y = jnp.abs(x + h * drift + jnp.sqrt(2 * h) * noise)
    return y.at[-1].set(1 - jnp.sum(y[:-1]))


# Wright-Fisher dynamics on the simplex with 1 - 3 x for 1 - K x. Right for three categories.
simplex_three = simple_sampler(_three_step, claims=SIMPLEX)
