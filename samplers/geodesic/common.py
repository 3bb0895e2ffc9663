"""Samplers on embedded manifolds: state, full variable, tangent noise, and the order at a boundary.

At a boundary with reflections (`positive`, `simplex`) the order of a splitting A B O B A is a statement about laws,
not about points. A path that meets a face in a step of size h feels the force before and after the reflection for the
time fractions of the crossing, while the kick is given once, in the middle of the step: an error of the velocity of
O(h) in a fraction O(h) of the law. A path that is unfolded at the face sees a potential with a kink there; for
crossing times with a smooth density the errors of crossings before and after the middle of the step cancel, so that
they leave O(h^3) in expectations: the order 2 of the invariant law remains if the potential is smooth up to the faces.
At a single point within O(h) of a face the local error is O(h), and no local weak order holds there. For densities
like theta^(a-1), a < 1 or a not an integer, the force is infinite at the face and no order is claimed.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers.dynamics.embedded import projection
from sgmcmc_verification.samplers.interface.aliases import EstimatorState, Position, Scalar, Tree
from sgmcmc_verification.samplers.numerics.noise import correlated_like, momentum_like, normal_like
from sgmcmc_verification.targets.manifolds.base import Manifold

Friction = Any
"""C of a Langevin equation: a number, or a symmetric positive definite matrix (n, n) as an array or its rows."""
SPACES = ("euclidean", "positive", "sphere", "simplex", "stiefel", "product")
"""Manifolds on which the samplers with geodesics run: the whole catalogue."""


class TangentPoint(NamedTuple):
    """The full variable z: a point of the manifold and a tangent vector there, both in ambient coordinates."""

    position: Position
    velocity: Tree


class GeodesicState(NamedTuple):
    """Position, velocity and the estimator's own state."""

    position: Position
    velocity: Tree
    estate: EstimatorState


def boundary_conditions(manifold: Manifold) -> tuple[str, ...]:
    """Conditions of the orders besides the gradient: a smooth potential up to a boundary, where there is one."""
    return ("a potential that is smooth up to the boundary",) if manifold.has_boundary else ()


def velocity_like(key: jax.Array, manifold: Manifold, position: Position, temperature: float) -> Tree:
    """v ~ N(0, T P(x)), the law of the velocity at a point."""
    return manifold.tangent(position, momentum_like(key, position, temperature))


def arrive(manifold: Manifold, position: Position, velocity: Tree) -> tuple[Position, Tree]:
    """Position and velocity moved back to the constraint, by round-off."""
    position = manifold.project_roundoff(position)
    return position, manifold.tangent(position, velocity)


def projected_noise(
    key: jax.Array,
    manifold: Manifold,
    position: Position,
    friction: Friction,
    root: np.ndarray | None,
    temperature: float,
    step_size: Scalar,
    covariance: jax.Array | None,
) -> Tree:
    """Noise whose tangent part is N(0, P (2 C T h - h^2 V^) P); its normal part is left to the caller's projection.

    Args:
        key: a typed key.
        manifold: gives P.
        position: x.
        friction: C, a number or a matrix (n, n).
        root: a square root (n, n) of a matrix C; None for a number.
        temperature: T.
        step_size: h.
        covariance: V^ (n, n), or None for V^ = 0.

    Returns:
        A pytree like the position. Negative eigenvalues of the covariance are set to zero.
    """
    if covariance is not None:
        P = projection(manifold, position)
        C = friction if root is None else jnp.asarray(np.asarray(friction), P.dtype)
        wanted = 2 * temperature * step_size * (C * P if root is None else P @ C @ P)
        return correlated_like(key, position, wanted - step_size**2 * (P @ covariance @ P))
    white = normal_like(key, position)
    if root is None:
        scale = jnp.sqrt(2 * friction * temperature * step_size)
        return jax.tree.map(lambda n: scale.astype(n.dtype) * n, white)
    flat, unravel = ravel_pytree(white)
    scale = jnp.sqrt(2 * temperature * step_size).astype(flat.dtype)
    return unravel(scale * (jnp.asarray(root, flat.dtype) @ flat))
