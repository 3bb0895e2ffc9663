"""Pytrees as flat vectors, without a program for each of their operations where nothing is traced."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree


def placed(value: Any, dtype: Any = None) -> jax.Array:
    """An array of JAX with these values: `jnp.asarray` compiles a program for each shape of them."""
    return jax.device_put(np.asarray(value, dtype))


def flattened(tree: Any) -> tuple[jax.Array, Callable[[Any], Any]]:
    """`ravel_pytree`, by NumPy where nothing is traced."""
    leaves = jax.tree.leaves(tree)
    if not leaves or any(isinstance(leaf, Tracer) for leaf in leaves):
        return ravel_pytree(tree)
    dtype = jnp.result_type(*leaves)
    return placed(np.concatenate([np.ravel(np.asarray(leaf)).astype(dtype) for leaf in leaves])), unraveller(tree)


def unraveller(tree: Any) -> Callable[[Any], Any]:
    """The map from a flat vector to a pytree of the shapes and types of `tree`, as `ravel_pytree` lays it out."""
    leaves, structure = jax.tree.flatten(tree)
    shapes = [(np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves]
    ends = np.cumsum([0, *(math.prod(shape) for shape, _ in shapes)])

    def unravel(flat: Any) -> Any:
        spans = zip(ends, ends[1:], shapes, strict=False)
        return jax.tree.unflatten(structure, [flat[i:j].reshape(shape).astype(kind) for i, j, (shape, kind) in spans])

    return unravel
