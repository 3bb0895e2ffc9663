"""Sums and scalars of small vectors, written so that XLA compiles them well for many chains on the last axis."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def dot(a: Float[Array | np.ndarray, " n"], b: Float[Array | np.ndarray, " n"]) -> Float[Array, ""]:
    """sum_i a_i b_i of two vectors, in full precision."""
    return jnp.matmul(a, b, precision="highest")


def computed_once(*scalars: float | Float[Array | np.ndarray, ""]) -> Float[Array, " k"]:
    """The scalars (), unchanged, behind a product with the identity: (len(scalars),).

    XLA fuses the arithmetic of a scalar into the loop over the coordinates that it multiplies, where it is done again
    for each of them; it does not fuse a product. On a CPU the geodesic flow on S^49 is four times as fast for it.
    """
    stacked = jnp.stack(scalars)
    return jnp.matmul(jnp.eye(len(scalars), dtype=stacked.dtype), stacked, precision="highest")
