"""The exponential of a small matrix."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

DEGREE = 16
RADIUS = 0.5


def matrix_exponential(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """exp(A) of a square matrix (n, n), by scaling, a Taylor polynomial and squaring.

        exp(A) = (sum_{k <= 16} (A / 2^s)^k / k!)^(2^s),  s the least with |A / 2^s|_1 <= 1/2

    The polynomial takes seven products and its truncation error is 0.5^17 / 17! = 2e-20; round-off grows with |A|_1.
    `jax.scipy.linalg.expm` of jax 0.10 rounds the number of halvings down: its error reaches 2e-8 in double precision
    where |A|_1 is just below 5.37 times a power of two. Derivatives in forward mode only, since the number of squarings
    depends on the matrix.

    Source: moler2003nineteen, methods 1 and 3.

    Args:
        matrix: A (n, n), floats.

    Returns:
        exp(A) (n, n); NaN if an entry is not finite.
    """
    norm = jnp.max(jnp.sum(jnp.abs(matrix), axis=0))
    large = (norm > RADIUS) & jnp.isfinite(norm)
    halvings = jnp.where(large, jnp.ceil(jnp.log2(jnp.where(large, norm, 1) / RADIUS)), 0).astype(jnp.int32)
    a = matrix * jnp.ldexp(jnp.ones((), matrix.dtype), -halvings)
    identity = jnp.eye(len(matrix), dtype=matrix.dtype)
    square = a @ a
    powers = (identity, a, square, square @ a)
    fourth = square @ square
    result = identity * (1 / math.factorial(DEGREE))
    for low in range(DEGREE - 4, -1, -4):
        result = result @ fourth + sum(power * (1 / math.factorial(low + i)) for i, power in enumerate(powers))
    return jax.lax.fori_loop(0, halvings, lambda _, e: e @ e, result)
