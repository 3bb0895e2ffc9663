"""Several unit spheres of one size."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from sgmcmc_verification.targets.manifolds.sphere import Sphere
from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real
from sgmcmc_verification.targets.numerics.validation import require_whole


@dataclass(frozen=True)
class ProductOfSpheres:
    """(S^(n-1))^k with the metric of the embedding; points are arrays (k, n), a sphere a row.

        every row moves as on `Sphere`: the great circle of its own point and velocity; the blocks do not mix
        dimension: k (n - 1);  mean curvature: -(n - 1) x, row by row

    Source: liu2016stochastic, equation (7), row by row. Numerical range: that of `Sphere`.

    Args:
        count: k, number of spheres.
        n: dimension of the embedding space of each, at least 2.

    Raises:
        ValueError: if `count` is not an integer of at least 1 or `n` not one of at least 2.
    """

    count: int
    n: int

    is_linear, is_positive, has_boundary = False, False, False

    def __post_init__(self) -> None:
        require_whole("count", self.count, 1)
        require_whole("n", self.n, 2)

    @property
    def factor(self) -> Sphere:
        """One of the spheres."""
        return Sphere(self.n)

    @property
    def name(self) -> str:
        """Registry name, `sphere(n-1)^k`."""
        return f"{self.factor.name}^{self.count}"

    @property
    def dim(self) -> int:
        """Intrinsic dimension k (n - 1)."""
        return self.count * self.factor.dim

    def tangent(self, point: Float[AnyArray, "k n"], vector: Float[AnyArray, "k n"]) -> Float[AnyArray, "k n"]:
        """(I - x x^T) u in each row."""
        return jax.vmap(self.factor.tangent)(point, vector)

    def geodesic(
        self, point: Float[AnyArray, "k n"], velocity: Float[AnyArray, "k n"], time: Real
    ) -> tuple[Float[AnyArray, "k n"], Float[AnyArray, "k n"]]:
        """A great circle in each row."""
        return jax.vmap(self.factor.geodesic, (0, 0, None))(point, velocity, time)

    def random(self, key: Key[Array, ""]) -> Float[AnyArray, "k n"]:
        """Independent uniform points."""
        return self.project_roundoff(jax.random.normal(key, (self.count, self.n)))

    def project_roundoff(self, point: Float[AnyArray, "k n"]) -> Float[AnyArray, "k n"]:
        """x / |x| in each row."""
        return jax.vmap(self.factor.project_roundoff)(point)

    def contains(self, point: Float[AnyArray, "k n"]) -> Bool[Array, ""]:
        """True where every row is a point of its sphere."""
        return jnp.all(jax.vmap(self.factor.contains)(point))

    def mean_curvature(self, point: Float[AnyArray, "k n"]) -> Float[AnyArray, "k n"]:
        """-(n - 1) x."""
        return -self.factor.dim * point
