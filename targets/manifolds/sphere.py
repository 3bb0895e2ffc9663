"""The unit sphere."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Sphere:
    """S^(n-1) = {x in R^n : |x| = 1} with the metric of the embedding; points are arrays (n,).

        geodesic: x(t) = x cos(a t) + (v / a) sin(a t),  v(t) = v cos(a t) - a x sin(a t),  a = |v|
        tangent projection: I - x x^T

    Source: liu2016stochastic, section 4 (geodesic flow of the sphere).

    Args:
        n: dimension of the embedding space, at least 2; the intrinsic dimension is n - 1.
    """

    n: int

    def __post_init__(self):
        if self.n < 2:
            raise ValueError(f"n: the embedding space must have dimension at least 2, got {self.n!r}")

    @property
    def name(self) -> str:
        """Registry name, `sphere(n-1)`."""
        return f"sphere({self.n - 1})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension n - 1."""
        return self.n - 1

    def tangent(self, point, vector):
        """(I - x x^T) u."""
        return vector - point * (point @ vector)

    def geodesic(self, point, velocity, time):
        """The great circle; at zero speed the point stays (and derivatives in the velocity stay finite)."""
        squared = velocity @ velocity
        moving = squared > 0
        speed = jnp.sqrt(jnp.where(moving, squared, 1))  # the inner where keeps the derivative of sqrt finite
        cosine = jnp.where(moving, jnp.cos(speed * time), 1)
        sine = jnp.where(moving, jnp.sin(speed * time) / speed, time)
        return point * cosine + velocity * sine, velocity * cosine - point * (squared * sine)

    def random(self, key):
        """A uniform point."""
        return self.project_roundoff(jax.random.normal(key, (self.n,)))

    def project_roundoff(self, point):
        """x / |x|."""
        return point / jnp.sqrt(point @ point)

    def contains(self, point):
        """True where | |x|^2 - 1 | is at most 64 n eps and every entry is finite."""
        tolerance = 64 * self.n * float(jnp.finfo(point.dtype).eps)
        return (jnp.abs(point @ point - 1) <= tolerance) & jnp.all(jnp.isfinite(point))
