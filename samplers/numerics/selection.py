"""The median of many numbers without sorting them."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int


@jax.jit
def median_of_nonnegative(values: Float[Array, "..."]) -> Float[Array, ""]:
    """The median of an array of numbers that are not negative, the same as `jnp.median` to the last bit.

    Non-negative floating-point numbers are ordered as the integers with the same bits are, so that bisection over the
    bits finds the k-th smallest number in 31 (single) or 63 (double precision) passes over the array. On a CPU this is
    several times as fast as sorting a million of them.

    Args:
        values: any shape, at least one, none negative; NaN gives NaN.
    """
    flat = jnp.ravel(values)
    n, dtype = flat.size, flat.dtype
    whole = {4: jnp.int32, 8: jnp.int64}[dtype.itemsize]
    bits = lax.bitcast_convert_type(flat + 0, whole)  # -0 + 0 is 0
    # The two in the middle, each by its own rank. To ask which numbers lie above the lower one would compare it with
    # itself, and XLA may have made `bits` anew there, with other roundings.
    ranks = (n - 1) // 2 + jnp.arange(2 - n % 2)

    def halve(i: int | Int[Array, ""], known: Int[Array, " k"]) -> Int[Array, " k"]:
        # the largest number with fewer than `rank` + 1 entries below it, bit by bit from the highest
        tried = known | (jnp.ones((), whole) << jnp.asarray(8 * dtype.itemsize - 2 - i, whole))
        return jnp.where(jnp.sum(bits < tried[:, None], axis=1) <= ranks, tried, known)

    found = lax.fori_loop(0, 8 * dtype.itemsize - 1, halve, jnp.zeros(ranks.shape, whole))
    middle = jnp.mean(lax.bitcast_convert_type(found, dtype))
    return jnp.where(jnp.isnan(flat).any(), jnp.full_like(middle, jnp.nan), middle)
