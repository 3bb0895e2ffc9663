"""Products of manifolds."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key

from sgmcmc_verification.targets.manifolds.base import Manifold, Point
from sgmcmc_verification.targets.numerics.arrays import Real

Points = tuple[Point, ...]
"""One entry per factor."""


@dataclass(frozen=True)
class Product:
    """M_1 x ... x M_k with the sum of the metrics; points and tangent vectors are tuples, one entry a factor.

        geodesic, projection and mean curvature act factor by factor;  the dimension is the sum

    Source: the product metric; for its use in sampling, byrne2013geodesic. Numerical range: that of the factors.
    Spheres of one size in one array are `ProductOfSpheres`.

    Args:
        factors: a tuple of manifolds.

    Raises:
        ValueError: if `factors` is not a non-empty tuple of manifolds.
    """

    factors: tuple[Manifold, ...]

    def __post_init__(self) -> None:
        given: Any = self.factors  # of whatever type a caller has put there
        if not (isinstance(given, tuple) and given and all(isinstance(factor, Manifold) for factor in given)):
            raise ValueError(f"factors: must be a non-empty tuple of manifolds, got {given!r}")

    @property
    def name(self) -> str:
        """Registry name, `product(NAME,...)`."""
        return f"product({','.join(factor.name for factor in self.factors)})"

    @property
    def dim(self) -> int:
        """Sum of the intrinsic dimensions."""
        return sum(factor.dim for factor in self.factors)

    @property
    def is_linear(self) -> bool:
        """True if every factor is linear."""
        return all(factor.is_linear for factor in self.factors)

    @property
    def is_positive(self) -> bool:
        """True if every factor is an orthant."""
        return all(factor.is_positive for factor in self.factors)

    @property
    def has_boundary(self) -> bool:
        """True if a factor has a boundary."""
        return any(factor.has_boundary for factor in self.factors)

    def tangent(self, point: Points, vector: Points) -> Points:
        """The tangent projection of each entry."""
        return tuple(m.tangent(x, u) for m, x, u in zip(self.factors, point, vector, strict=True))

    def geodesic(self, point: Points, velocity: Points, time: Real) -> tuple[Points, Points]:
        """The geodesic flow of each entry, for the same time."""
        pairs = [m.geodesic(x, v, time) for m, x, v in zip(self.factors, point, velocity, strict=True)]
        return tuple(x for x, _ in pairs), tuple(v for _, v in pairs)

    def random(self, key: Key[Array, ""]) -> Points:
        """Independent random points of the factors."""
        keys = jax.random.split(key, len(self.factors))
        return tuple(m.random(k) for m, k in zip(self.factors, keys, strict=True))

    def project_roundoff(self, point: Points) -> Points:
        """Each entry moved back to its factor."""
        return tuple(m.project_roundoff(x) for m, x in zip(self.factors, point, strict=True))

    def contains(self, point: Points) -> Bool[Array, ""]:
        """True where every entry is a point of its factor."""
        return jnp.all(jnp.stack([m.contains(x) for m, x in zip(self.factors, point, strict=True)]))

    def mean_curvature(self, point: Points) -> Points:
        """The mean curvature of each entry."""
        return tuple(m.mean_curvature(x) for m, x in zip(self.factors, point, strict=True))
