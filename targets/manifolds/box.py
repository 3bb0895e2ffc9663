"""The unit box."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from sgmcmc_verification.targets.manifolds.base import Point
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real


@dataclass(frozen=True)
class Box(Euclidean):
    """[0, 1]^n with the Euclidean metric; every vector is tangent, and lines are reflected at the faces.

        geodesic: y = x + t v, k = floor y;  x_i(t) = y_i - k_i where k_i is even, else 1 - (y_i - k_i);
        v_i(t) = v_i where k_i is even, else -v_i

    The straight line, folded: it keeps Lebesgue measure and the speed, and runs back after a change of sign of v. A box
    with other faces is this one after a change of units. The faces belong to it.

    Source: neal2011mcmc, section 5.5.1 (constraints that are handled by reflections). Numerical range: |t v_i| below
    1 / eps; a point comes back with the absolute error eps (1 + |t v_i|).

    Args:
        dim: n.

    Raises:
        ValueError: if `dim` is not an integer of at least 1.
    """

    is_linear, is_positive, has_boundary = False, False, True

    @property
    def name(self) -> str:
        """Registry name, `box(n)`."""
        return f"box({self.dim})"

    def geodesic(self, point: Point, velocity: Point, time: Real) -> tuple[Point, Point]:
        """The straight line, reflected at the faces, leaf by leaf."""
        straight, velocity = super().geodesic(point, velocity, time)
        # -0.0 is no crossing, and a point on the upper face that does not move stays there
        odd = lambda y: (jnp.floor(y) % 2 == 1) & (y != 1)
        moved = jax.tree.map(lambda y: 1 - jnp.abs(1 - y % 2), straight)
        return moved, jax.tree.map(lambda y, v: jnp.where(odd(y), -v, v), straight, velocity)

    def random(self, key: Key[Array, ""]) -> Float[AnyArray, " n"]:
        """A uniform point (n,)."""
        return jax.random.uniform(key, (self.dim,))

    def contains(self, point: Point) -> Bool[Array, ""]:
        """True where every entry lies between 0 and 1, the ends included."""
        inside = [jnp.all((leaf >= 0) & (leaf <= 1)) for leaf in jax.tree.leaves(point)]
        return jnp.all(jnp.stack(inside))
