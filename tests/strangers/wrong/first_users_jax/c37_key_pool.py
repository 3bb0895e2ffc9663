"""SGLD whose noise is drawn in tiles of 64 numbers, from a pool of keys."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import simple_sampler

TILE, POOL = 64, 8


def tiled_normal(key, size, dtype):
    tiles = -(-size // TILE)
    keys = jax.random.split(key, POOL)
    blocks = jax.vmap(lambda k: jax.random.normal(k, (TILE,), dtype))(keys[jnp.arange(tiles) % POOL])
    return blocks.reshape(-1)[:size]


def step(key, x, h, estimator):
    a, b = jax.random.split(key)
    g = estimator.estimate(a, (), x)[0].gradient
    return x - h * g + jnp.sqrt(2 * h) * tiled_normal(b, x.size, x.dtype).reshape(x.shape)


tiled = simple_sampler(step)
