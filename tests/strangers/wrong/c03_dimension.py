"""Class 3: right in one to three dimensions, wrong in many."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.simple import simple_sampler
from sgmcmc_verification.samplers.types import Claims, ExactLaw, Source


def grad(estimator, key, x):
    return estimator.estimate(key, (), x)[0].gradient


def _flat_sgld(noise_of):
    """SGLD on the ravelled vector, with the noise of `noise_of(key, size, dtype)`."""

    def step(key, position, h, estimator):
        k1, k2 = jax.random.split(key)
        x, unravel = ravel_pytree(position)
        g, _ = ravel_pytree(grad(estimator, k1, position))
        return unravel(x - h * g + jnp.sqrt(2 * h) * noise_of(k2, x.size, x.dtype))

    return step


def _first_ten(key, d, dtype):
    return jnp.zeros(d, dtype).at[:10].set(jax.random.normal(key, (min(d, 10),), dtype))


# Noise in the first ten coordinates only.
noise_first_10 = simple_sampler(_flat_sgld(_first_ten))


def _per_coordinate(key, d, dtype):
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i % 16))(jnp.arange(d))
    return jax.vmap(lambda k: jax.random.normal(k, (), dtype))(keys)


# One key a coordinate, folded with i % 16: coordinates i and i + 16 get the same noise.
key_mod_16 = simple_sampler(_flat_sgld(_per_coordinate))


def _tiled(key, d, dtype):
    block = jax.random.normal(key, (64,), dtype)
    return jnp.tile(block, -(-d // 64))[:d]


# A block of 64 normals, tiled: coordinates i and i + 64 get the same noise.
block_64_tiled = simple_sampler(_flat_sgld(_tiled))


def _mean_gradient_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    return x - h * g / jnp.size(x) + jnp.sqrt(2 * h) * jax.random.normal(k2, jnp.shape(x), jnp.result_type(x))


# Gradient divided by the number of coordinates, noise not: T = d.
gradient_over_d = simple_sampler(_mean_gradient_step)


def _low_rank(key, d, dtype):
    if d <= 32:
        return jax.random.normal(key, (d,), dtype)
    basis = np.random.RandomState(0).randn(d, 32) / np.sqrt(32)
    return jnp.asarray(basis, dtype) @ jax.random.normal(key, (32,), dtype)


# From 33 coordinates on the noise is a fixed random projection of 32 normals: rank 32.
low_rank_above_32 = simple_sampler(_flat_sgld(_low_rank))


def _chunks(key, d, dtype):
    chunks = [jax.random.normal(key, (min(100, d - i),), dtype) for i in range(0, d, 100)]
    return jnp.concatenate(chunks)


# Drawn in chunks of 100 to save memory, every chunk with the same key.
chunks_share_key = simple_sampler(_flat_sgld(_chunks))


def _blocks_of_1000(key, d, dtype):
    if d < 1000:
        return jax.random.normal(key, (d,), dtype)
    whole = d // 1000
    keys = jax.random.split(key, whole)
    noise = jax.lax.map(lambda k: jax.random.normal(k, (1000,), dtype), keys).reshape(-1)
    return jnp.zeros(d, dtype).at[: 1000 * whole].set(noise)


# Blocks of 1000: the last block that is not full gets no noise.
last_block_of_1000 = simple_sampler(_flat_sgld(_blocks_of_1000))


def _pairs(key, d, dtype):
    """Box-Muller fills pairs; an odd number of coordinates leaves the last one empty."""
    if d == 1:
        return jax.random.normal(key, (1,), dtype)
    k1, k2 = jax.random.split(key)
    radius = jnp.sqrt(-2 * jnp.log1p(-jax.random.uniform(k1, (d // 2,), dtype)))
    angle = 2 * jnp.pi * jax.random.uniform(k2, (d // 2,), dtype)
    noise = jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=1).reshape(-1)
    return jnp.zeros(d, dtype).at[: 2 * (d // 2)].set(noise)


# Box-Muller in pairs: for odd d > 1 the last coordinate has no noise.
odd_last_coordinate = simple_sampler(_flat_sgld(_pairs))


def _row_noise_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    noise = jax.random.normal(k2, x.shape[:1] + (1,) * (x.ndim - 1), x.dtype)
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * noise


# One normal a row of a matrix, broadcast over its columns. Right for vectors.
normal_per_row = simple_sampler(_row_noise_step)


class Phase(NamedTuple):
    position: Any
    momentum: Any


def _phase_init(key, x, estimator):
    return Phase(x, jax.random.normal(key, x.shape, x.dtype))


def _resized_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    noise = jnp.resize(jax.random.normal(k2, (min(x.size, 128),), x.dtype), x.shape)
    r = r - h * grad(estimator, k1, x) - h * r + jnp.sqrt(2 * h) * noise
    return Phase(x + h * r, r)


# SGHMC: at most 128 normals, `resize` repeats them.
sghmc_resized_noise = simple_sampler(_resized_step, init=_phase_init, position=lambda s: s.position,
                                     unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z))


def _last_half_step(key, state, h, estimator):
    k1, k2 = jax.random.split(key)
    x, r = state
    friction = jnp.where(jnp.arange(x.size) < 3, 1.0, 1.5).reshape(x.shape).astype(x.dtype)
    r = r - h / 2 * grad(estimator, k1, x)
    x = x + h / 2 * r
    c = jnp.exp(-friction * h)
    r = c * r + jnp.sqrt(1 - jnp.exp(-2.0 * h)) * jax.random.normal(k2, x.shape, x.dtype)
    x = x + h / 2 * r
    r = r - h / 2 * grad(estimator, k1, x)
    return Phase(x, r)


# BAOAB with a friction per coordinate (1, 1, 1, 1.5, 1.5, ...) but the noise of friction 1 for all: T = 2/3 from the
# fourth coordinate on.
baoab_friction_vector = simple_sampler(_last_half_step, init=_phase_init, position=lambda s: s.position,
                                       unpack=lambda s: s, pack=lambda key, z, estimator: Phase(*z))


def _clip_norm_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    g = grad(estimator, k1, x)
    norm = jnp.sqrt(jnp.sum(g**2))
    g = g * jnp.minimum(1.0, 10.0 / (norm + 1e-6))
    return x - h * g + jnp.sqrt(2 * h) * jax.random.normal(k2, x.shape, x.dtype)


# clip_by_global_norm(10): the norm of a gradient in 1000 dimensions is about 32, so every gradient is shortened.
global_norm_10 = simple_sampler(_clip_norm_step)


def _mirror_noise(key, d, dtype):
    half = jax.random.normal(key, (-(-d // 2),), dtype)
    return jnp.concatenate([half, -half])[:d]


# Antithetic within a vector: coordinate i + d/2 gets minus the noise of coordinate i (d = 1 is right).
antithetic_halves = simple_sampler(_flat_sgld(_mirror_noise))


class Cached(NamedTuple):
    position: Any
    potential: Any


def _mean_rwm_step(key, state, h, estimator):
    k1, k2, k3 = jax.random.split(key, 3)
    x = state.position
    y = x + jnp.sqrt(2 * h / x.size) * jax.random.normal(k1, x.shape, x.dtype)
    new = estimator.estimate(k2, (), y)[0].potential
    accept = jnp.log(jax.random.uniform(k3)) < (state.potential - new) / max(1.0, x.size / 20)
    return Cached(jnp.where(accept, y, x), jnp.where(accept, new, state.potential))


# Random walk Metropolis that "softens" the ratio by d / 20 in more than 20 dimensions to keep the acceptance rate up.
rwm_softened_above_20 = simple_sampler(
    _mean_rwm_step, init=lambda key, x, estimator: Cached(x, estimator.estimate(key, (), x)[0].potential),
    position=lambda s: s.position, unpack=lambda s: s.position, needs=("potential",),
    claims=Claims(Source("", "random walk Metropolis"), ExactLaw()),
)


def _sphere_noise_step(key, x, h, estimator):
    k1, k2 = jax.random.split(key)
    z = jax.random.normal(k2, jnp.shape(x), jnp.result_type(x))
    z = z / jnp.sqrt(jnp.sum(z**2))
    return x - h * grad(estimator, k1, x) + jnp.sqrt(2 * h) * z


# Noise uniform on the unit sphere instead of the sphere of radius sqrt(d): T = 1 / d.
unit_direction_noise = simple_sampler(_sphere_noise_step)
