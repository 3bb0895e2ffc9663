"""The accept-reject step of Metropolis and Hastings, on pytrees and without branches."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.interface.aliases import Tree


def inner(a: Tree, b: Tree) -> jax.Array:
    """Sum of the products of the entries of two pytrees of the same structure."""
    return sum(jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))  # pyright: ignore


def accept(key: jax.Array, log_ratio: jax.Array, proposal: Tree, current: Tree) -> Tree:
    """`proposal` with probability min(1, exp(log_ratio)), else `current`, leaf by leaf.

    A `log_ratio` that is NaN rejects: NaN compares false.
    """
    accepted = jax.random.uniform(key, (), jnp.result_type(log_ratio)) < jnp.exp(jnp.minimum(log_ratio, 0.0))
    return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), proposal, current)


def finite_or_reject(potential: jax.Array, log_ratio: jax.Array) -> jax.Array:
    """`log_ratio`, or -inf where the potential of the proposal is not finite."""
    return jnp.where(jnp.isfinite(potential), log_ratio, -jnp.inf)
