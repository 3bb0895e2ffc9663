"""A differentiable square root of a positive semidefinite matrix."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_jvp
def positive_root(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Symmetric square root S of a symmetric matrix (n, n), S S = matrix with negative eigenvalues set to zero.

    Its derivative solves S X + X S = dM by least squares, because differentiating the eigenvectors divides by
    differences of eigenvalues and is NaN for a multiple of the identity. On the null space of the matrix the
    derivative is the one for perturbations that keep the rank.
    """
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.sqrt(jnp.clip(values, 0))) @ vectors.T


@positive_root.defjvp
def _positive_root_jvp(
    primals: tuple[Float[Array, "n n"]], tangents: tuple[Float[Array, "n n"]]
) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
    (matrix,), (change,) = primals, tangents
    root = positive_root(matrix)
    identity = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    operator = jnp.kron(root, identity) + jnp.kron(identity, root)
    solution = jnp.linalg.pinv(operator) @ change.reshape(-1)
    return root, solution.reshape(matrix.shape)
