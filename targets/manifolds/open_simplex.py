"""The open corner of R^n under the unit simplex."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from sgmcmc_verification.targets.manifolds.base import Point
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean


@dataclass(frozen=True)
class Corner(Euclidean):
    """{theta in R^n: theta_i > 0, sum_i theta_i < 1} with the Euclidean metric: n of n + 1 probabilities.

    Lines are not reflected: it is for laws whose density vanishes at the faces.

    Source: patterson2013stochastic, section 4 (the space of the reduced mean).

    Args:
        dim: n.

    Raises:
        ValueError: if `dim` is not an integer of at least 1.
    """

    is_linear, is_positive, has_boundary = False, False, False

    @property
    def name(self) -> str:
        """Registry name, `corner(n)`."""
        return f"corner({self.dim})"

    def random(self, key: Key[Array, ""]) -> Float[Array, " n"]:
        """A uniform point: the first n coordinates of Dirichlet(1, .., 1)."""
        return jax.random.dirichlet(key, jnp.ones(self.dim + 1))[:-1]

    def contains(self, point: Point) -> Bool[Array, ""]:
        """True where every entry is positive and their sum is below 1."""
        leaves = jax.tree.leaves(point)
        inside = jnp.all(jnp.stack([jnp.all(leaf > 0) for leaf in leaves]))
        return super().contains(point) & inside & (sum(jnp.sum(leaf) for leaf in leaves) < 1)
