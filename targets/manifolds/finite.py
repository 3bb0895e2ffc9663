"""Finite sets of states."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key

from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real
from sgmcmc_verification.targets.numerics.validation import require_whole


@dataclass(frozen=True)
class FiniteStates:
    """V^n, the vectors of n sites that each take one of K whole numbers: a manifold of dimension 0.

    Its measure counts the states, its tangent spaces are {0}, and nothing moves along geodesics.

    Args:
        sites: n.
        values: V, K increasing whole numbers.

    Raises:
        ValueError: if `sites` is not an integer of at least 1, or the values do not increase.
    """

    sites: int
    values: tuple[int, ...]

    dim = 0
    is_linear, is_positive, has_boundary = False, False, False

    def __post_init__(self) -> None:
        require_whole("sites", self.sites, 1)
        if any(b <= a for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ValueError(f"values: must be increasing whole numbers, got {self.values}")

    @property
    def name(self) -> str:
        """Registry name, `finite(K^n)`."""
        return f"finite({len(self.values)}^{self.sites})"

    @property
    def states(self) -> Int[np.ndarray, "s n"]:
        """All K^n states, the last site changing fastest."""
        digits = np.unravel_index(np.arange(len(self.values) ** self.sites), (len(self.values),) * self.sites)
        return np.asarray(self.values)[np.stack(digits, axis=-1)]

    def index(self, points: np.ndarray) -> Int[np.ndarray, "..."]:
        """Places of points (.., n) among `states`; -1 for a point that is none of them."""
        values = np.asarray(self.values)
        digits = np.minimum(np.searchsorted(values, points), len(values) - 1)
        inside = np.all(values[digits] == points, axis=-1)
        return np.where(inside, digits @ len(values) ** np.arange(self.sites)[::-1], -1)

    def tangent(self, point: AnyArray, vector: AnyArray) -> AnyArray:
        """Zero: no vector is tangent."""
        del point
        return jnp.zeros_like(vector)

    def geodesic(self, point: AnyArray, velocity: AnyArray, time: Real) -> tuple[AnyArray, AnyArray]:
        """The point itself."""
        del time
        return point, velocity

    def random(self, key: Key[Array, ""]) -> Int[AnyArray, " n"]:
        """A state, each with the same probability."""
        return jax.random.choice(key, jnp.asarray(self.values), (self.sites,))

    def project_roundoff(self, point: AnyArray) -> AnyArray:
        """The point itself: whole numbers have no round-off."""
        return point

    def contains(self, point: AnyArray) -> Bool[Array, ""]:
        """True where every entry is one of the values."""
        return jnp.all(jnp.isin(jnp.asarray(point), jnp.asarray(self.values)))

    def mean_curvature(self, point: AnyArray) -> AnyArray:
        """Zero: there is no direction."""
        return jnp.zeros_like(point)
