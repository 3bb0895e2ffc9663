"""Manifolds as zeros of constraint functions c(x) = 0, for the integrators that solve for multipliers."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.aliases import Position
from sgmcmc_verification.targets.manifolds.base import Manifold
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.manifolds.orthant import Positive
from sgmcmc_verification.targets.manifolds.product import Product
from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.manifolds.spheres import ProductOfSpheres
from sgmcmc_verification.targets.manifolds.stiefel import Stiefel

Constraint = Callable[[Position], jax.Array]
"""x (a point of the ambient space, as the manifold has it) -> c(x) (k,), with a Jacobian of rank k where c = 0."""


def constraint_of(manifold: Manifold) -> Constraint:
    """The constraint function of a manifold without boundary.

        sphere: (|x|^2 - 1) / 2;  product of spheres: that of every row;
        Stiefel: the entries (X^T X - I)_ij, i <= j, those of the diagonal halved;  product: those of the factors

    Raises:
        ValueError: if the manifold has a boundary or is none of the catalogue.
    """
    if isinstance(manifold, Sphere):
        return lambda x: jnp.reshape(0.5 * (x @ x - 1), (1,))
    if isinstance(manifold, ProductOfSpheres):
        return lambda x: 0.5 * (jnp.sum(x * x, axis=1) - 1)
    if isinstance(manifold, Stiefel):
        i, j = np.triu_indices(manifold.p)
        weight = np.where(i == j, 0.5, 1.0)
        return lambda x: jnp.asarray(weight, x.dtype) * ((x.T @ x)[i, j] - jnp.asarray(i == j, x.dtype))
    if isinstance(manifold, Product):
        parts = [constraint_of(factor) for factor in manifold.factors]
        return lambda x: jnp.concatenate([c(y) for c, y in zip(parts, x, strict=True)])
    if isinstance(manifold, Euclidean) and not isinstance(manifold, Positive):
        return lambda x: jnp.zeros((0,), jnp.result_type(*jax.tree.leaves(x)))
    raise ValueError(f"manifold: {manifold.name} is not given by equations alone; use a sampler with geodesics")


def solve_small(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """matrix^-1 right, by cofactors for up to three equations.

    A batched factorisation of such small matrices takes several times as long as all else in a step of Newton's method.
    Cofactors lose some digits where the matrix is nearly singular; the iteration makes up for that.

    Args:
        matrix: (k, k).
        right: (k,).

    Returns:
        (k,), not finite if the matrix is singular.
    """
    k = matrix.shape[0]
    if k == 1:
        return right / matrix[0, 0]
    if k == 2:
        (a, b), (c, d) = matrix
        return jnp.stack([d * right[0] - b * right[1], a * right[1] - c * right[0]]) / (a * d - b * c)
    if k == 3:
        first, second, third = matrix.T
        cofactors = jnp.stack([jnp.cross(second, third), jnp.cross(third, first), jnp.cross(first, second)])
        return cofactors @ right / (first @ cofactors[0])
    return jnp.linalg.solve(matrix, right)
