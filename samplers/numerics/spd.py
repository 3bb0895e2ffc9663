"""Linear algebra of small symmetric positive definite matrices, written out entry by entry.

A step that is mapped over many chains calls LAPACK in batches. For a few coordinates that takes longer than all else in
the step, and in jaxlib 0.10 several batched factorisations of one program can wait for each other for ever on a machine
of two cores (jax-ml/jax#36927 is about the speed). Larger matrices, of which a chain has few, go to LAPACK.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

MOST = 8
"""Largest size that is written out: n^3 / 6 products."""


def _ldl(matrix: Float[Array, "n n"]) -> tuple[list[list[Float[Array, ""]]], list[Float[Array, ""]]]:
    """L (its rows below the diagonal) and d of matrix = L diag(d) L^T."""
    rows: list[list[Float[Array, ""]]] = []
    pivots: list[Float[Array, ""]] = []
    for i in range(matrix.shape[0]):
        row: list[Float[Array, ""]] = []
        rest = matrix[i, i]
        for j in range(i):
            scaled = matrix[i, j]
            for k in range(j):
                scaled = scaled - row[k] * rows[j][k] * pivots[k]
            row.append(scaled / pivots[j])
            rest = rest - row[j] * row[j] * pivots[j]
        rows.append(row)
        pivots.append(rest)
    return rows, pivots


def solve(matrix: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    """matrix^-1 right.

    Args:
        matrix: (n, n), symmetric positive definite; its lower triangle is read if n <= `MOST`.
        right: (n,).

    Returns:
        (n,), not finite if the matrix is singular.
    """
    n = matrix.shape[0]
    if n > MOST:
        return jnp.linalg.solve(matrix, right)
    rows, pivots = _ldl(matrix)
    y: list[Float[Array, ""]] = []
    for i in range(n):
        value = right[i]
        for j in range(i):
            value = value - rows[i][j] * y[j]
        y.append(value)
    x = [value / pivot for value, pivot in zip(y, pivots, strict=True)]
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            x[i] = x[i] - rows[j][i] * x[j]
    return jnp.stack(x)


def log_det(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """log |matrix|, for a symmetric positive definite (n, n); its lower triangle is read if n <= `MOST`."""
    if matrix.shape[0] > MOST:
        return jnp.linalg.slogdet(matrix)[1]
    return jnp.sum(jnp.log(jnp.stack(_ldl(matrix)[1])))
