"""Coefficients of exact Ornstein-Uhlenbeck flows, without cancellation at small times.

Both functions are analytic through zero, and so are their derivatives as automatic differentiation computes them.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Reals = float | Float[Array | np.ndarray, "*shape"]

_TERMS = 15  # 0.5 ** 15 / 16! is below the round-off of float64


def decay_ratio(y: Reals) -> Float[Array, "*shape"]:
    """(1 - exp(-y)) / y, which is 1 at y = 0, for any sign of y.

    A Taylor series for |y| < 1/2, `expm1` beyond: `expm1` alone is accurate too, but its derivatives divide
    round-off by powers of y, and 0 / 0 is what it gives at zero.

    Args:
        y: a scalar or an array of any shape.

    Returns:
        An array of the shape and dtype of y.
    """
    small = jnp.abs(y) < 0.5
    # each branch only ever sees arguments that it is accurate for: a NaN in the branch not taken would reach gradients
    inner = jnp.where(small, y, 0.0 * y)
    outer = jnp.where(small, 1.0 + 0.0 * y, y)
    series = 1.0 + 0.0 * inner
    for k in range(_TERMS, 0, -1):
        series = 1.0 - inner / (k + 1) * series
    return jnp.where(small, series, -jnp.expm1(-outer) / outer)


def tanh_excess(y: Reals) -> Float[Array, "*shape"]:
    """(y - tanh y) / y^3, which is 1/3 at y = 0, for y >= 0.

    For y < 1 from Lambert's continued fraction tanh y = y / (1 + y^2 / (3 + y^2 / (5 + ...))), whose terms are all
    positive so that nothing cancels; from the definition beyond.

    Args:
        y: a scalar or an array of any shape, y >= 0.

    Returns:
        An array of the shape and dtype of y.
    """
    small = y < 1.0
    inner = jnp.where(small, y, 0.0 * y)
    outer = jnp.where(small, 1.0 + 0.0 * y, y)
    square = inner * inner
    tail = 21.0 + 0.0 * inner
    for k in range(19, 1, -2):
        tail = k + square / tail
    # with c = y^2 / tail: y - tanh y = y c / (1 + c)
    return jnp.where(small, 1.0 / (tail + square), (outer - jnp.tanh(outer)) / outer**3)
