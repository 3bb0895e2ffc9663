"""SGHMC for optax, with noise that does not depend on the order of the leaves of a tree.

    v' = momentum v - lr g + N(0, 2 (1 - momentum) lr T / N)        w' = w + v'

g is the gradient of the mean loss over N = `num_data` data. Each leaf draws from a key of its own, made of the key of the step and of the name
of the leaf: adding a layer, or a library that sorts its modules in another way, leaves the noise of all others what it was.
"""

import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class SGHMCState(NamedTuple):
    key: jax.Array
    velocity: optax.Updates


def _leaf_key(key, path):
    """A key for the leaf at `path`, the same in each process and for each order of leaves."""
    name = jax.tree_util.keystr(path[-1:])
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def named_normal(key, tree):
    """Standard normal draws in the shape of `tree`."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: jax.random.normal(_leaf_key(key, path), leaf.shape, leaf.dtype), tree
    )


def named_sghmc(
    learning_rate: float,
    num_data: int = 1000,
    momentum: float = 0.9,
    temperature: float = 1.0,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> optax.GradientTransformation:
    """`weight_decay` is added to the gradient: a normal prior of precision `weight_decay` times `num_data`."""
    if not 0 <= momentum < 1:
        raise ValueError("momentum lies in [0, 1)")

    def init_fn(params):
        return SGHMCState(jax.random.key(seed), jax.tree.map(jnp.zeros_like, params))

    def update_fn(updates, state, params=None):
        if weight_decay and params is None:
            raise ValueError("weight decay needs params")
        if weight_decay:
            updates = jax.tree.map(lambda g, p: g + weight_decay * p, updates, params)
        key, noise_key = jax.random.split(state.key)
        deviation = (2 * (1 - momentum) * learning_rate * temperature / num_data) ** 0.5
        velocity = jax.tree.map(
            lambda v, g, z: momentum * v - learning_rate * g + deviation * z,
            state.velocity,
            updates,
            named_normal(noise_key, updates),
        )
        return velocity, SGHMCState(key, velocity)

    return optax.GradientTransformation(init_fn, update_fn)
