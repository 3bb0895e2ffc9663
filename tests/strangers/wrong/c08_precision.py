"""Class 8: errors of precision: float32 only, half precision, casts that lose noise, whole numbers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.simple import simple_sampler


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _float32_halved_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    variance = h if x.dtype == jnp.float32 else 2 * h  # the branch for float32 was not updated
    scale = jnp.sqrt(jnp.asarray(variance, x.dtype))
    return x - (h * grad(estimator, k1, x)).astype(x.dtype) + scale * jax.random.normal(k2, x.shape, x.dtype)


# Half of the variance in single precision.
float32_half_noise = simple_sampler(_float32_halved_step)


def _finfo_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    variance = jnp.maximum(jnp.asarray(2 * h, x.dtype), jnp.sqrt(jnp.finfo(x.dtype).eps))
    noise = jnp.sqrt(variance).astype(x.dtype) * jax.random.normal(k2, x.shape, x.dtype)
    return x - jnp.asarray(h, x.dtype) * grad(estimator, k1, x) + noise


# Variance at least sqrt(eps): 3.5e-4 in single precision, so T = 1.7 at h = 1e-4; 1.5e-8 in double precision.
floor_sqrt_eps = simple_sampler(_finfo_step)


def _own_bits_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    if x.dtype == jnp.float32:
        bits = jax.random.bits(k2, x.shape, jnp.uint32) >> 9
        u = bits.astype(jnp.float32) / 2**23 * 1.9 - 0.95  # keeps erfinv finite
    else:
        u = jax.random.uniform(k2, x.shape, x.dtype, -1, 1)
    noise = jnp.sqrt(2.0).astype(x.dtype) * jax.scipy.special.erfinv(u)
    return x - jnp.asarray(h, x.dtype) * grad(estimator, k1, x) + jnp.sqrt(2 * jnp.asarray(h, x.dtype)) * noise


# Own normals for float32, with the uniform in [-0.95, 0.95]: variance 0.759.
float32_truncated = simple_sampler(_own_bits_step)


def _bfloat16_noise_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    noise = jax.random.normal(k2, x.shape, jnp.bfloat16).astype(x.dtype)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise


# Normals drawn in bfloat16 "for speed": eight bits, no tails, and a mean that is not zero.
bfloat16_noise = simple_sampler(_bfloat16_noise_step)


def _bfloat16_position_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    half = x.astype(jnp.bfloat16).astype(x.dtype)
    return half - h * grad(estimator, k1, half) + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)


# The position goes through bfloat16 (mixed precision) in every step: rounding adds noise and eats small increments.
bfloat16_position = simple_sampler(_bfloat16_position_step)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _init(key, x, estimator):
    return Phase(x, jax.random.normal(key, x.shape, x.dtype))


def _single_decay_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    c = jnp.exp(-jnp.asarray(h, jnp.float32))
    scale = jnp.sqrt(1 - c * c).astype(x.dtype)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    r = jnp.exp(-h) * r + scale * jax.random.normal(k2, x.shape, x.dtype)
    x = x + h / 2 * r
    r = r - h / 2 * grad(estimator, k1, x)
    return Phase(x, r)


# BAOAB with 1 - c^2 in single precision and the drift in double: errors of 6e-8 / h in the variance (6 % at h = 1e-6).
baoab_single_decay = simple_sampler(_single_decay_step, init=_init, position=lambda s: s.position, unpack=lambda s: s,
                                    pack=lambda key, z, estimator: Phase(*z))


def _bfloat16_momentum_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    r = r - h * grad(estimator, k1, x) - h * r + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)
    r = r.astype(jnp.bfloat16).astype(x.dtype)  # momenta are kept in half precision
    return Phase(x + h * r, r)


# SGHMC that keeps its momentum in bfloat16: rounding cools it, Var r = 0.985 at h = 1e-4, 0.90 at h = 1e-5.
sghmc_bfloat16_momentum = simple_sampler(_bfloat16_momentum_step, init=_init, position=lambda s: s.position,
                                        unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z))


def _whole_number_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    levels = jnp.round(jax.random.normal(k2, x.shape, x.dtype) * 2).astype(jnp.int8) // 2  # quantised noise
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * levels


# Noise quantised to whole numbers with // (floor): its mean is -0.25 and its variance 1.08.
int8_noise = simple_sampler(_whole_number_step)
