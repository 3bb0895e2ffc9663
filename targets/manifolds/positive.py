"""The open positive orthant."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Positive:
    """(0, inf)^n with the Euclidean metric; an open subset of R^n, so every vector is tangent.

        geodesic: (x, v) -> (x + t v, v)

    A straight line may leave the set; `contains` says so, and what to do then (reflect, reject, change variables) is
    the sampler's matter.

    Args:
        dim: n.
    """

    dim: int

    def __post_init__(self):
        if self.dim < 1:
            raise ValueError(f"dim: must be at least 1, got {self.dim!r}")

    @property
    def name(self) -> str:
        """Registry name, `positive(n)`."""
        return f"positive({self.dim})"

    def tangent(self, point, vector):
        """The vector itself: every vector is tangent."""
        del point
        return vector

    def geodesic(self, point, velocity, time):
        """(x + t v, v), leaf by leaf; it is not stopped at the boundary."""
        return jax.tree.map(lambda x, v: x + time * v, point, velocity), velocity

    def random(self, key):
        """A vector (n,) of independent unit exponentials."""
        return jax.random.exponential(key, (self.dim,))

    def project_roundoff(self, point):
        """The point itself: an open set has no constraint to drift from."""
        return point

    def contains(self, point):
        """True where every entry is positive and finite."""
        return jnp.all(jnp.stack([jnp.all((leaf > 0) & jnp.isfinite(leaf)) for leaf in jax.tree.leaves(point)]))
