"""Flat space R^n."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key

from sgmcmc_verification.targets.manifolds.base import Point
from sgmcmc_verification.targets.numerics.arrays import Real
from sgmcmc_verification.targets.numerics.validation import require_whole


@dataclass(frozen=True)
class Euclidean:
    """R^n with the Euclidean metric; points are pytrees of arrays with n numbers in all.

        geodesic: (x, v) -> (x + t v, v)

    Source: liu2016stochastic, section 3.1 (the identity embedding). Numerical range: all finite numbers.

    Args:
        dim: n.

    Raises:
        ValueError: if `dim` is not an integer of at least 1.
    """

    dim: int

    is_linear, is_positive, has_boundary = True, False, False

    def __post_init__(self) -> None:
        require_whole("dim", self.dim, 1)

    @property
    def name(self) -> str:
        """Registry name, `euclidean(n)`."""
        return f"euclidean({self.dim})"

    def tangent(self, point: Point, vector: Point) -> Point:
        """The vector itself: every vector is tangent."""
        del point
        return vector

    def geodesic(self, point: Point, velocity: Point, time: Real) -> tuple[Point, Point]:
        """(x + t v, v), leaf by leaf."""
        return jax.tree.map(lambda x, v: x + time * v, point, velocity), velocity

    def random(self, key: Key[Array, ""]) -> Point:
        """A standard normal vector (n,)."""
        return jax.random.normal(key, (self.dim,))

    def project_roundoff(self, point: Point) -> Point:
        """The point itself: there is no constraint."""
        return point

    def contains(self, point: Point) -> Bool[Array, ""]:
        """True where every entry is finite."""
        return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(point)]))

    def mean_curvature(self, point: Point) -> Point:
        """Zero: the space is flat."""
        return jax.tree.map(jnp.zeros_like, point)
