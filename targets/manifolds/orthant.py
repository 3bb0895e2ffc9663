"""The open positive orthant."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from sgmcmc_verification.targets.manifolds.base import Point
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real


@dataclass(frozen=True)
class Positive(Euclidean):
    """(0, inf)^n with the Euclidean metric; every vector is tangent, and lines are reflected where a coordinate is 0.

        geodesic: y = x + t v;  x_i(t) = |y_i|,  v_i(t) = -v_i where y_i < 0, else v_i

    The coordinates do not meet: each line crosses 0 at most once, so the reflected flow is the straight one, unfolded.
    It keeps Lebesgue measure and the speed, and runs back after a change of sign of v. A point lands on the boundary
    itself, which `contains` refuses, only if y_i rounds to 0.

    Source: neal2011mcmc, section 5.5.1 (constraints that are handled by reflections). Numerical range: all positive
    numbers; a coordinate far below |t v_i| comes back with the absolute error eps |t v_i|.

    Args:
        dim: n.

    Raises:
        ValueError: if `dim` is not an integer of at least 1.
    """

    is_linear, is_positive, has_boundary = False, True, True

    @property
    def name(self) -> str:
        """Registry name, `positive(n)`."""
        return f"positive({self.dim})"

    def geodesic(self, point: Point, velocity: Point, time: Real) -> tuple[Point, Point]:
        """The straight line, reflected where a coordinate crosses 0, leaf by leaf."""
        straight, velocity = super().geodesic(point, velocity, time)
        moved = jax.tree.map(lambda y: jnp.where(y < 0, -y, y), straight)
        return moved, jax.tree.map(lambda y, v: jnp.where(y < 0, -v, v), straight, velocity)

    def random(self, key: Key[Array, ""]) -> Float[AnyArray, " n"]:
        """A vector (n,) of independent unit exponentials."""
        return jax.random.exponential(key, (self.dim,))

    def contains(self, point: Point) -> Bool[Array, ""]:
        """True where every entry is positive and finite."""
        return super().contains(point) & jnp.all(jnp.stack([jnp.all(leaf > 0) for leaf in jax.tree.leaves(point)]))
