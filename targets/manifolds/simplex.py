"""The probability simplex, flat, with reflections at its faces."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real
from sgmcmc_verification.targets.numerics.validation import require_whole


@dataclass(frozen=True)
class Simplex:
    """{x in R^K : x_i >= 0, sum x = 1} with the Euclidean metric; points are arrays (K,), faces included.

        tangent projection: u - mean(u)
        geodesic: a straight line until a coordinate x_j reaches 0; there the velocity is reflected in that face,
            v_j <- -v_j,  v_i <- v_i + 2 v_j / (K - 1) for i != j  (v_j before the change)
            and so on until the time is up

    The reflected flow keeps the volume and the speed, and runs back after a change of sign of v. There is no bound on
    the number of reflections in a given time (a path of length L has about 0.4 L K^(3/2) of them, the mean free path
    being sqrt(2 pi) K^(-3/2)), so a path that needs more than `max_reflections` is not followed at all: the point stays
    and its velocity turns round. A path and its reverse need the same number, so this too keeps the volume, the speed
    and reversibility, hence the law of a sampler; it is no longer a geodesic, and no flow, and a sampler that does this
    often has too large a step size.

    Density with respect to the (K - 1)-dimensional Hausdorff measure, which is sqrt(K) times Lebesgue measure of the
    first K - 1 coordinates; the constant does not matter to a potential.

    Source: neal2011mcmc, section 5.5.1 (reflections), with the normal of the face taken within the hyperplane.
    Numerical range: coordinates down to the smallest normal number, and zero; after a path of length L
    with r reflections the point is known to (1 + L) (1 + r) eps in absolute terms.

    Args:
        size: K, at least 2; the intrinsic dimension is K - 1.
        max_reflections: bound of the work of one flow, each reflection costing O(K).

    Raises:
        ValueError: if `size` is not an integer of at least 2 or `max_reflections` not one of at least 0.
    """

    size: int
    max_reflections: int = 10_000

    is_linear, is_positive, has_boundary = False, False, True

    def __post_init__(self) -> None:
        require_whole("size", self.size, 2)
        require_whole("max_reflections", self.max_reflections, 0)

    @property
    def name(self) -> str:
        """Registry name, `simplex(K-1)`."""
        return f"simplex({self.size - 1})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension K - 1."""
        return self.size - 1

    def tangent(self, point: Float[AnyArray, " K"], vector: Float[AnyArray, " K"]) -> Float[AnyArray, " K"]:
        """u - mean(u)."""
        del point
        return vector - jnp.mean(vector)

    def geodesic(
        self, point: Float[AnyArray, " K"], velocity: Float[AnyArray, " K"], time: Real
    ) -> tuple[Float[AnyArray, " K"], Float[AnyArray, " K"]]:
        """The straight line, reflected at the faces; forward-mode derivatives only where there are reflections."""
        # Backwards in time is forwards with the velocity reversed; at time 0 the derivative in time has to survive.
        sign = jnp.where(time < 0, -1, 1).astype(point.dtype)

        def unfinished(path: tuple[Any, ...]) -> jax.Array:
            _, _, remaining, first, _, count = path
            return (first < remaining) & (count < self.max_reflections)

        def reflect(path: tuple[Any, ...]) -> tuple[Any, ...]:
            x, v, remaining, first, face, count = path
            hit = jnp.arange(self.size) == face
            x = jnp.where(hit, 0, _advance(x, v, first))
            v = self.reflected(v, hit)
            return x, v, remaining - first, *_next_face(x, v), count + 1

        start = (point, sign * velocity, sign * time, *_next_face(point, sign * velocity), 0)
        x, v, remaining, first, _, _ = jax.lax.while_loop(unfinished, reflect, start)
        arrived = ~(first < remaining)
        x = jnp.where(arrived, _advance(x, v, remaining), point)
        return x, jnp.where(arrived, sign * v, -velocity)

    def reflected(self, velocity: Float[AnyArray, " K"], hit: Bool[Array, " K"]) -> Float[AnyArray, " K"]:
        """The tangent velocity after a reflection in the face x_j = 0; `hit` (K,) is True at j alone."""
        into = jnp.sum(jnp.where(hit, velocity, 0))
        return jnp.where(hit, -velocity, velocity + 2 / (self.size - 1) * into)

    def random(self, key: Key[Array, ""]) -> Float[AnyArray, " K"]:
        """A uniform point: Dirichlet(1, ..., 1), by independent exponentials over their sum."""
        return self.project_roundoff(jax.random.exponential(key, (self.size,)))

    def project_roundoff(self, point: Float[AnyArray, " K"]) -> Float[AnyArray, " K"]:
        """max(x, 0) over its sum: small coordinates keep their relative precision."""
        inside = jnp.where(point < 0, 0, point)
        return inside / jnp.sum(inside)

    def contains(self, point: Float[AnyArray, " K"]) -> Bool[Array, ""]:
        """True where no entry is negative and |sum - 1| is at most (64 + K) eps."""
        tolerance = (64 + self.size) * float(jnp.finfo(point.dtype).eps)
        return jnp.all(point >= 0) & (jnp.abs(jnp.sum(point) - 1) <= tolerance)

    def mean_curvature(self, point: Float[AnyArray, " K"]) -> Float[AnyArray, " K"]:
        """Zero: the simplex is flat."""
        return jnp.zeros_like(point)


def _next_face(x: Float[AnyArray, " K"], v: Float[AnyArray, " K"]) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """Time until the first coordinate reaches 0 on x + t v, t >= 0 (inf for none), and its index."""
    falling = v < 0
    times = jnp.where(falling, x / jnp.where(falling, -v, 1), jnp.inf)
    return jnp.min(times), jnp.argmin(times)


def _advance(x: Float[AnyArray, " K"], v: Float[AnyArray, " K"], time: Real) -> Float[AnyArray, " K"]:
    """x + t v for a time within the simplex, where only round-off is negative."""
    moved = x + time * v
    return jnp.where(moved < 0, 0, moved)
