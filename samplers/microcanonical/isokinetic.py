"""The sub-flows of microcanonical dynamics: dx = u dt, du = -P(u) grad U / (d - 1) dt, |u| = 1, P(u) = I - u u^T."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.interface.aliases import Position, Scalar, Tree
from sgmcmc_verification.samplers.interface.metropolis import inner
from sgmcmc_verification.samplers.numerics.noise import normal_like
from sgmcmc_verification.samplers.thermostats.common import count


class Turned(NamedTuple):
    """A direction after a kick, and (d - 1) log(cosh delta + e . u sinh delta), the work of the force on the way."""

    direction: Tree
    work: jax.Array


def require_several(position: Position) -> None:
    """Raise ValueError for a position of one coordinate, whose direction nothing turns."""
    if count(position) < 2:
        raise ValueError(f"position: a direction that turns needs at least two coordinates, got {count(position)}")


def unit(tree: Tree) -> Tree:
    """A vector over its length, over all leaves."""
    length = jnp.sqrt(inner(tree, tree))
    return jax.tree.map(lambda leaf: leaf / length, tree)


def uniform_direction(key: jax.Array, position: Position) -> Tree:
    """A direction with the uniform law on the sphere."""
    return unit(normal_like(key, position))


def kick(direction: Tree, gradient: Tree, time: Scalar) -> Turned:
    """The exact flow of du = -P(u) g / (d - 1) dt for a constant gradient g.

        u' = (u + e (sinh delta + (e . u) (cosh delta - 1))) / (cosh delta + (e . u) sinh delta),
        e = -g / |g|,  delta = t |g| / (d - 1)

    Numerator and denominator are multiplied by 2 exp(-delta), so that neither overflows.

    Source: robnik2023microcanonical, section 3 (the update of the direction).
    """
    g, _ = ravel_pytree(gradient)
    u, unravel = ravel_pytree(direction)
    size = jnp.sqrt(jnp.sum(g**2))
    along = -g / jnp.where(size > 0, size, 1.0)
    delta = time * size / (g.size - 1)
    z, cosine = jnp.exp(-delta), jnp.dot(along, u)
    turned = 2 * z * u + along * (1 - z) * (1 + z + cosine * (1 - z))
    denominator = (1 + z**2 + cosine * (1 - z**2)) / 2  # times exp(delta)
    # its length is the denominator: divided by itself it stays one to round-off
    return Turned(unravel(turned / jnp.sqrt(jnp.sum(turned**2))), (g.size - 1) * (delta + jnp.log(denominator)))


def drift(position: Position, direction: Tree, time: Scalar) -> Position:
    """x + t u."""
    return jax.tree.map(lambda x, u: x + time * u, position, direction)


def refresh(key: jax.Array, direction: Tree, time: Scalar, decoherence: float) -> Tree:
    """A direction that is partly drawn anew: u' = (u + nu z) / |u + nu z|, z ~ N(0, I), which keeps the uniform law.

        nu^2 = (exp(2 t / L) - 1) / d

    Source: robnik2023microcanonical, section 4 (partial refreshment).
    """
    nu = jnp.sqrt(jnp.expm1(2 * jnp.asarray(time) / decoherence) / count(direction))
    return unit(jax.tree.map(lambda u, z: u + nu.astype(z.dtype) * z, direction, normal_like(key, direction)))
