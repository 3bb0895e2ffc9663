"""The interface that every manifold has."""

from typing import Protocol, runtime_checkable

from jaxtyping import Array, Bool, Key

from sgmcmc_verification.targets.numerics.arrays import Real, Tree

Point = Tree
"""A point or a vector of the ambient space."""


@runtime_checkable
class Manifold(Protocol):
    """A Riemannian manifold embedded in R^n, described by what a sampler needs of it.

    Points and tangent vectors are arrays of the embedding space (or pytrees of them); the metric is always that of the
    embedding, <u, v> = sum of u_i v_i. A density on the manifold is with respect to its Hausdorff measure (for an open
    subset of R^n: Lebesgue). Where there is a boundary, geodesics are reflected at it.

    Attributes:
        name: registry name, such as `"sphere(2)"`.
        dim: the *intrinsic* dimension (n - 1 for the unit sphere in R^n), the number that a thermostat and a
            kinetic temperature have to use.
        is_linear: R^n itself, without constraint or boundary; any tree of arrays is a point.
        is_positive: the positive orthant, whose coordinates are free but for their sign.
        has_boundary: geodesics are reflected at a boundary, of a factor of a product too.
    """

    @property
    def name(self) -> str:
        """Name that messages and rows use."""
        ...

    @property
    def dim(self) -> int:
        """Intrinsic dimension."""
        ...

    @property
    def is_linear(self) -> bool:
        """True for R^n."""
        ...

    @property
    def is_positive(self) -> bool:
        """True for the positive orthant."""
        ...

    @property
    def has_boundary(self) -> bool:
        """True where geodesics are reflected at a boundary."""
        ...

    def tangent(self, point: Point, vector: Point) -> Point:
        """Orthogonal projection of `vector` (ambient, same shape as `point`) onto the tangent space."""
        ...

    def geodesic(self, point: Point, velocity: Point, time: Real) -> tuple[Point, Point]:
        """Exact geodesic flow for a time, of either sign: `(point, velocity) -> (point, velocity)`.

        It keeps the speed and, after `velocity -> -velocity`, runs back. Relative to its scale the point is known to
        eps times one plus the length of the path, |velocity time|.
        """
        ...

    def random(self, key: Key[Array, ""]) -> Point:
        """A random point: uniform where the volume is finite, else a standard spread-out draw (documented)."""
        ...

    def project_roundoff(self, point: Point) -> Point:
        """Remove the round-off drift of the constraint; moves a valid point by round-off only."""
        ...

    def contains(self, point: Point) -> Bool[Array, ""]:
        """True where `point` satisfies the constraint up to round-off, with finite entries."""
        ...

    def mean_curvature(self, point: Point) -> Point:
        """Mean curvature vector: the trace of the second fundamental form over an orthonormal tangent frame.

            H = sum_i (second derivative of the geodesic from x in the direction e_i) = Laplacian of the embedding
            Laplace-Beltrami of f:  tr(P Hessian f) + <H, grad f>,  P the tangent projection, f on the ambient space

        It is a normal vector of the shape of `point`, zero on a flat manifold.
        """
        ...
