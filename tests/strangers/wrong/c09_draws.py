"""Class 9: draws from own helpers and from other laws than the normal, with the wrong scale."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _sgld_with(draw):
    """SGLD with `draw(key, shape, dtype)` for its noise."""

    def step(key, x, h, estimator):
        k1, k2 = jax.random.split(key)
        return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * draw(k2, x.shape, x.dtype)

    return step


@jax.jit
def _normal(key, like):
    return 0.5 * jax.random.normal(key, like.shape, like.dtype)


# A jitted helper called _normal that returns half a normal: T = 1/4.
helper_half_normal = simple_sampler(_sgld_with(lambda key, shape, dtype: _normal(key, jnp.zeros(shape, dtype))))


@jax.jit
def normal(key, like):
    """Normals (an old version of the helper had an `init_scale` of 0.9)."""
    return 0.9 * jax.random.normal(key, like.shape, like.dtype)


# A jitted helper called normal with a scale of 0.9: T = 0.81.
helper_scaled_normal = simple_sampler(_sgld_with(lambda key, shape, dtype: normal(key, jnp.zeros(shape, dtype))))


def _box_muller(key, shape, dtype):
    k1, k2 = jax.random.split(key)
    u, v = jax.random.uniform(k1, shape, dtype), jax.random.uniform(k2, shape, dtype)
    return jnp.sqrt(-jnp.log1p(-u)) * jnp.cos(2 * jnp.pi * v)


# Box-Muller without the 2 in sqrt(-2 log u): T = 1/2.
box_muller_no_2 = simple_sampler(_sgld_with(_box_muller))


def _box_muller_half_circle(key, shape, dtype):
    k1, k2 = jax.random.split(key)
    u, v = jax.random.uniform(k1, shape, dtype), jax.random.uniform(k2, shape, dtype)
    return jnp.sqrt(-2 * jnp.log1p(-u)) * jnp.sin(jnp.pi * v)


# Box-Muller with sin(pi v): always positive, mean 0.80.
box_muller_half_circle = simple_sampler(_sgld_with(_box_muller_half_circle))

# Uniform on [-1, 1]: variance 1/3.
uniform_unscaled = simple_sampler(_sgld_with(lambda key, shape, dtype: jax.random.uniform(key, shape, dtype, -1, 1)))

# A normal truncated to two standard deviations (the default of initialisers): variance 0.7737.
truncated_normal = simple_sampler(
    _sgld_with(lambda key, shape, dtype: jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype))
)


def _byte_noise(key, shape, dtype):
    byte = jax.random.bits(key, shape, jnp.uint8).astype(dtype)
    return (byte - 128) / 73.9  # a uniform of unit variance


# Uniform noise from a byte, centred at 128 instead of 127.5: mean -0.0068, a drift of 0.0096 / sqrt(h).
byte_off_centre = simple_sampler(_sgld_with(_byte_noise))

# Student t with 5 degrees of freedom, not scaled: T = 5/3.
student_unscaled = simple_sampler(_sgld_with(lambda key, shape, dtype: jax.random.t(key, 5.0, shape, dtype)))

# Coin minus one half: variance 1/4.
coin_minus_half = simple_sampler(
    _sgld_with(lambda key, shape, dtype: jax.random.bernoulli(key, 0.5, shape).astype(dtype) - 0.5)
)

# Laplace of scale 1: T = 2.
laplace_unscaled = simple_sampler(_sgld_with(lambda key, shape, dtype: jax.random.laplace(key, shape, dtype)))

# Gumbel minus its mean, of scale 1: T = pi^2 / 6.
gumbel_centred = simple_sampler(
    _sgld_with(lambda key, shape, dtype: jax.random.gumbel(key, shape, dtype) - 0.5772156649015329)
)

# Rademacher signs multiplied by sqrt(2) once more: T = 2.
rademacher_twice = simple_sampler(
    _sgld_with(lambda key, shape, dtype: jnp.sqrt(2.0).astype(dtype) * jax.random.rademacher(key, shape, dtype))
)

# Six uniforms minus 3, where the central limit recipe has twelve minus 6: T = 1/2.
six_uniforms = simple_sampler(
    _sgld_with(lambda key, shape, dtype: jax.random.uniform(key, (6, *shape), dtype).sum(0) - 3.0)
)


def _popcount_noise(key, shape, dtype):
    ones = jax.lax.population_count(jax.random.bits(key, shape, jnp.uint32)).astype(dtype)
    return (ones - 16) / jnp.sqrt(32.0).astype(dtype)


# Number of ones in 32 bits: its variance is 8, not 32. T = 1/4.
popcount_scaled_wrong = simple_sampler(_sgld_with(_popcount_noise))


def _multivariate_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    flat = jnp.ravel(x)
    covariance = jnp.sqrt(2 * h) * jnp.eye(flat.size, dtype=flat.dtype)
    noise = jax.random.multivariate_normal(k2, jnp.zeros_like(flat), covariance)
    return x - h * grad(estimator, k1, x) + noise.reshape(x.shape)


# multivariate_normal wants a covariance and gets a standard deviation: variance sqrt(2 h).
covariance_or_deviation = simple_sampler(_multivariate_step)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _exponential_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    noise = jax.random.exponential(k2, x.shape, x.dtype) * jax.random.rademacher(k1, x.shape, x.dtype)
    r = r - h * grad(estimator, k1, x) - h * r + jnp.sqrt(2 * h) * noise
    return Phase(x + h * r, r)


# SGHMC with a signed exponential (a Laplace draw of variance 2): T = 2.
sghmc_signed_exponential = simple_sampler(
    _exponential_step, init=lambda key, x, estimator: Phase(x, jax.random.normal(key, x.shape, x.dtype)),
    position=lambda s: s.position, unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z),
)


def _sparse_noise(key, shape, dtype):
    k1, k2 = jax.random.split(key)
    return jax.random.bernoulli(k1, 0.5, shape) * jax.random.normal(k2, shape, dtype)


# Dropout of half of the noise without the factor sqrt(2): T = 1/2.
noise_with_dropout = simple_sampler(_sgld_with(_sparse_noise))
