"""Gaussian noise for pytrees: standard, correlated, and compensated for gradient noise."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real, Tree


def normal_like(key: Key[Array, ""], tree: Tree) -> Tree:
    """Independent N(0, 1) entries with the structure, shapes and dtypes of `tree`; one key a leaf."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves)) if len(leaves) > 1 else [key]
    draws = [jax.random.normal(k, jnp.shape(leaf), jnp.result_type(leaf)) for k, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, draws)


def momentum_like(key: Key[Array, ""], tree: Tree, temperature: Real) -> Tree:
    """Independent N(0, T) entries with the structure, shapes and dtypes of `tree`."""
    root = jnp.sqrt(temperature)
    return jax.tree.map(lambda n: root.astype(n.dtype) * n, normal_like(key, tree))


def correlated_like(key: Key[Array, ""], tree: Tree, covariance: Float[AnyArray, "d d"]) -> Tree:
    """N(0, S) with the structure of `tree`; S (d, d) in ravel order.

    A matrix that is not positive semidefinite has its negative eigenvalues set to zero: the recipe paper asks for
    2 D - epsilon B-hat >= 0, and for an estimated B-hat only the projection of it can be drawn.
    """
    flat, unravel = ravel_pytree(tree)
    values, vectors = jnp.linalg.eigh(covariance)
    white = jax.random.normal(key, flat.shape, flat.dtype)
    return unravel(vectors @ (jnp.sqrt(jnp.clip(values, 0)) * (vectors.T @ white)))


def injected_noise(
    key: Key[Array, ""],
    tree: Tree,
    variance: Real,
    step_size: Real = 0.0,
    gradient_covariance: Float[Array, "d d"] | None = None,
) -> Tree:
    """The injected noise of a step: N(0, variance I), less the gradient noise if its covariance is given.

    Args:
        key: a typed key.
        tree: gives structure, shapes and dtypes.
        variance: scalar, variance of the noise that the SDE asks for in one step (2 epsilon D).
        step_size: epsilon.
        gradient_covariance: V-hat (d, d) or None; then the covariance is variance I - epsilon^2 V-hat.
    """
    if gradient_covariance is None:
        return jax.tree.map(lambda n: jnp.sqrt(variance) * n, normal_like(key, tree))
    identity = jnp.eye(gradient_covariance.shape[0], dtype=gradient_covariance.dtype)
    return correlated_like(key, tree, variance * identity - step_size**2 * gradient_covariance)
