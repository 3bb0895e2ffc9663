"""Langevin dynamics with block-generated noise.

Calling the generator in every step is slow on accelerators, so the Gaussian increments of several steps are drawn
together and consumed row by row; a new block is drawn when the old one is used up. Overdamped, Euler-Maruyama,
bias O(h). Works for any pytree.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

BLOCK = 8


class BlockState(NamedTuple):
    position: object
    block: jax.Array  # (BLOCK, d) standard normals
    cursor: jax.Array  # next row to be used


class BlockLangevin:
    def init(self, key, position, estimator):
        flat, _ = ravel_pytree(position)
        block = jax.random.normal(key, (BLOCK, flat.size), flat.dtype)
        return BlockState(position, block, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        gradient_key, block_key = jax.random.split(key)
        flat, unravel = ravel_pytree(state.position)
        used_up = state.cursor >= BLOCK
        block = lax.cond(
            used_up,
            lambda k: jax.random.normal(k, (BLOCK, flat.size), flat.dtype),
            lambda k: state.block,
            block_key,
        )
        cursor = jnp.where(used_up, 0, state.cursor)
        noise = lax.dynamic_index_in_dim(block, cursor, keepdims=False)
        gradient, _ = ravel_pytree(estimator.estimate(gradient_key, (), state.position)[0].gradient)
        flat = flat - step_size * gradient + jnp.sqrt(2 * step_size).astype(flat.dtype) * noise
        return BlockState(unravel(flat), block, cursor + 1)
