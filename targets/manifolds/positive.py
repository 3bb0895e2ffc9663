"""The open positive orthant."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from targets.manifolds.euclidean import Euclidean


@dataclass(frozen=True)
class Positive(Euclidean):
    """(0, inf)^n with the Euclidean metric; an open subset of R^n, so every vector is tangent and geodesics are lines.

    A straight line may leave the set; `contains` says so, and what to do then (reflect, reject, change variables) is
    the sampler's matter.

    Args:
        dim: n.
    """

    @property
    def name(self) -> str:
        """Registry name, `positive(n)`."""
        return f"positive({self.dim})"

    def random(self, key):
        """A vector (n,) of independent unit exponentials."""
        return jax.random.exponential(key, (self.dim,))

    def contains(self, point):
        """True where every entry is positive and finite."""
        return super().contains(point) & jnp.all(jnp.stack([jnp.all(leaf > 0) for leaf in jax.tree.leaves(point)]))
