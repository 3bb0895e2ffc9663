"""The Stiefel manifold of orthonormal frames."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from sgmcmc_verification.targets.manifolds.matrix_exponential import matrix_exponential
from sgmcmc_verification.targets.numerics.arrays import AnyArray, Real
from sgmcmc_verification.targets.numerics.validation import require_whole


@dataclass(frozen=True)
class Stiefel:
    """V_p(R^n) = {X in R^(n x p) : X^T X = I} with the metric of the embedding; points are arrays (n, p).

        tangent projection: U - X (X^T U + U^T X) / 2
        geodesic, A = X^T V (skew), S = V^T V:
            [X(t) V(t)] = [X V] expm(t [[A, -S], [I, A]]) diag(expm(-t A), expm(-t A))
        dimension: n p - p (p + 1) / 2;  mean curvature: -(n - (p + 1) / 2) X

    V is divided by its length before the exponential, so that the entries of the block are of the size of |t V|.

    Source: edelman1998geometry, section 2.2 (projection, and geodesics of the embedded, not the canonical metric);
    byrne2013geodesic (their use in sampling). The mean curvature is the sum of the accelerations -X S over an
    orthonormal frame of tangents. Numerical range: the error is of the order of eps (1 + |t V|) for n >= 2 p and of
    eps (1 + |t V|)^2 for n < 2 p, where the block is not diagonalisable. Derivatives in forward mode only.

    Args:
        n: rows.
        p: columns, between 1 and n; not n = p = 1, which is two points.

    Raises:
        ValueError: if `n` or `p` is not an integer in its range.
    """

    n: int
    p: int

    is_linear, is_positive, has_boundary = False, False, False

    def __post_init__(self) -> None:
        require_whole("n", self.n, 2)
        require_whole("p", self.p, 1)
        if self.p > self.n:
            raise ValueError(f"p: must be at most n = {self.n}, got {self.p!r}")

    @property
    def name(self) -> str:
        """Registry name, `stiefel(n,p)`."""
        return f"stiefel({self.n},{self.p})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension n p - p (p + 1) / 2."""
        return self.n * self.p - self.p * (self.p + 1) // 2

    def tangent(self, point: Float[AnyArray, "n p"], vector: Float[AnyArray, "n p"]) -> Float[AnyArray, "n p"]:
        """U - X sym(X^T U)."""
        inner = point.T @ vector
        return vector - point @ (inner + inner.T) * 0.5

    def geodesic(
        self, point: Float[AnyArray, "n p"], velocity: Float[AnyArray, "n p"], time: Real
    ) -> tuple[Float[AnyArray, "n p"], Float[AnyArray, "n p"]]:
        """The matrix exponential of a 2p x 2p block; smooth in the velocity, at zero speed too."""
        squared = jnp.sum(velocity * velocity)
        moving = squared > 0
        speed = jnp.sqrt(jnp.where(moving, squared, 1))  # any scale will do: the flow does not depend on it
        unit = velocity / speed
        turn = speed * time
        inner = point.T @ unit
        spin = turn * 0.5 * (inner - inner.T)  # skew up to round-off already
        one = turn * jnp.eye(self.p, dtype=point.dtype)
        block = jnp.block([[spin, -turn * (unit.T @ unit)], [one, spin]])
        both = jnp.concatenate([point, unit], axis=1) @ matrix_exponential(block)
        back = matrix_exponential(-spin)
        return both[:, : self.p] @ back, speed * (both[:, self.p :] @ back)

    def random(self, key: Key[Array, ""]) -> Float[AnyArray, "n p"]:
        """A uniform point: the Q of a Gaussian matrix, with the signs that make the diagonal of R positive."""
        q, r = jnp.linalg.qr(jax.random.normal(key, (self.n, self.p)))
        return q * jnp.where(jnp.diagonal(r) < 0, -1, 1).astype(q.dtype)

    def project_roundoff(self, point: Float[AnyArray, "n p"]) -> Float[AnyArray, "n p"]:
        """The nearest frame X (X^T X)^(-1/2), by two Newton steps X <- X (3 I - X^T X) / 2.

        An error e of X^T X becomes about 3/4 e^2 in a step: round-off, for any e below 1e-4. Unlike a decomposition
        this has a derivative at a frame, where all the singular values agree.
        """
        for _ in range(2):
            point = point @ (3 * jnp.eye(self.p, dtype=point.dtype) - point.T @ point) * 0.5
        return point

    def contains(self, point: Float[AnyArray, "n p"]) -> Bool[Array, ""]:
        """True where every entry of X^T X - I is at most (64 + n) eps in size."""
        tolerance = (64 + self.n) * float(jnp.finfo(point.dtype).eps)
        return jnp.all(jnp.abs(point.T @ point - jnp.eye(self.p, dtype=point.dtype)) <= tolerance)

    def mean_curvature(self, point: Float[AnyArray, "n p"]) -> Float[AnyArray, "n p"]:
        """-(n - (p + 1) / 2) X."""
        return -(self.n - (self.p + 1) / 2) * point
