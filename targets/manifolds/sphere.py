"""The unit sphere."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real
from sgmcmc_verification.targets.numerics.small_sums import computed_once, dot
from sgmcmc_verification.targets.numerics.validation import require_whole


@dataclass(frozen=True)
class Sphere:
    """S^(n-1) = {x in R^n : |x| = 1} with the metric of the embedding; points are arrays (n,).

        geodesic: x(t) = x cos(a t) + (v / a) sin(a t),  v(t) = v cos(a t) - a x sin(a t),  a = |v|
        tangent projection: I - x x^T
        mean curvature: -(n - 1) x

    Source: liu2016stochastic, section 3.3, equation (7) (geodesic flow) and what follows it (projection). Numerical
    range: any n that fits in memory; speeds from 1e-140 to 1e140, in single precision from 1e-15 to 1e15 (a slower one
    counts as zero: the path is straight). The angle a t is known to eps |a t|: beyond 1 / eps the point is at random.

    Args:
        n: dimension of the embedding space, at least 2; the intrinsic dimension is n - 1.

    Raises:
        ValueError: if `n` is not an integer of at least 2.
    """

    n: int

    is_linear, is_positive, has_boundary = False, False, False

    def __post_init__(self) -> None:
        require_whole("n", self.n, 2)

    @property
    def name(self) -> str:
        """Registry name, `sphere(n-1)`."""
        return f"sphere({self.n - 1})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension n - 1."""
        return self.n - 1

    def tangent(self, point: Float[AnyArray, " n"], vector: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
        """(I - x x^T) u."""
        return vector - point * dot(point, vector)

    def geodesic(
        self, point: Float[AnyArray, " n"], velocity: Float[AnyArray, " n"], time: Real
    ) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """The great circle; smooth in the velocity, at zero speed too."""
        # in powers of |v|^2 and t, so that nothing is divided by the speed and one sum over n does for all
        change = time * dot(velocity, velocity)
        cosine, sinc = _cosine_and_sinc(time * change)
        cosine, ahead, back = computed_once(cosine, time * sinc, change * sinc)
        return point * cosine + velocity * ahead, velocity * cosine - point * back

    def random(self, key: Key[Array, ""]) -> Float[AnyArray, " n"]:
        """A uniform point."""
        return self.project_roundoff(jax.random.normal(key, (self.n,)))

    def project_roundoff(self, point: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
        """x / |x|."""
        return point * computed_once(1 / jnp.sqrt(dot(point, point)))[0]

    def contains(self, point: Float[AnyArray, " n"]) -> Bool[Array, ""]:
        """True where | |x|^2 - 1 | is at most (64 + n) eps and every entry is finite.

        n eps bounds the error of the sum of squares itself, 64 eps is for what led to the point.
        """
        tolerance = (64 + self.n) * float(jnp.finfo(point.dtype).eps)
        return (jnp.abs(point @ point - 1) <= tolerance) & jnp.all(jnp.isfinite(point))

    def mean_curvature(self, point: Float[AnyArray, " n"]) -> Float[AnyArray, " n"]:
        """-(n - 1) x: every unit-speed great circle has acceleration -x."""
        return -self.dim * point


def _cosine_and_sinc(squared: Real) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """cos(a), sin(a) / a from a^2 >= 0, with derivatives that are right at 0.

    Below 0.01 by the Taylor series in a^2: the first term left out is 1e-12 / 12! of the sum, and 1e-8 / 12! * 30 of
    its second derivative.
    """
    small = squared < 0.01
    angle = jnp.sqrt(jnp.where(small, 1, squared))  # the inner where keeps the derivative of sqrt finite
    near = jnp.where(small, squared, 0)
    cosine, sinc = jnp.ones_like(near), jnp.ones_like(near)
    for k in (5, 4, 3, 2, 1):
        cosine = 1 - near / (2 * k * (2 * k - 1)) * cosine
        sinc = 1 - near / (2 * k * (2 * k + 1)) * sinc
    return jnp.where(small, cosine, jnp.cos(angle)), jnp.where(small, sinc, jnp.sin(angle) / angle)
