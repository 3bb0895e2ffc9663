"""The recipe: every continuous Markov process with stationary law exp(-H) as a pair (D, Q) [ma2015complete].

A `Dynamics` states H, D and Q once. Drift, Gamma, generator and Fokker-Planck residual are derived from them by
automatic differentiation, so none of them is ever written a second time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Vector = Float[Array, " n"]
VectorField = Callable[[Vector], Float[Array, " n"]]
MatrixField = Callable[[Vector], Any]
"""(n,) -> (n, n), an array or, for a metric, a `samplers.riemannian.metrics.Diagonal`."""
ScalarField = Callable[[Vector], Float[Array, ""]]


def row_divergence(matrix: MatrixField, z: Vector) -> Float[Array, " n"]:
    """The vector (div M)_i = sum_j d M_ij / d z_j at z; `matrix` maps (n,) to (n, n), an array or a `metrics.Diagonal`.

    Of a diagonal matrix whose entries M_ii depend on z_i alone it is d M_ii / d z_i, the derivative along (1, .., 1).
    """
    if hasattr(jax.eval_shape(matrix, z), "separable_entries"):
        return jax.jvp(lambda y: matrix(y).separable_entries, (z,), (jnp.ones_like(z),))[1]
    return jnp.einsum("ijj->i", jax.jacfwd(matrix)(z))


@dataclass(frozen=True, eq=False)
class Dynamics:
    """dz = f(z) dt + sqrt(2 D(z)) dW with f = -(D + Q) grad H + Gamma, Gamma_i = sum_j d_j (D_ij + Q_ij).

    Source: ma2015complete, equation (3) and theorem 1. Differs from the source in:
        1. the sign of Gamma: equations (6), (9), (14) and (17) print it inside the minus bracket; the theorem and
           Algorithm 1 have it with a plus, as here.

    Attributes:
        H: z -> scalar, the Hamiltonian; the claimed stationary law of z is exp(-H) (Lebesgue).
        D: z -> (n, n), symmetric positive semidefinite.
        Q: z -> (n, n), skew-symmetric.
        names: a name for each coordinate of z, such as `("theta[0]", "r[0]", "xi")`.
        size: number of leading coordinates of z that are the position theta.
    """

    H: ScalarField
    D: MatrixField
    Q: MatrixField
    names: tuple[str, ...]
    size: int

    @property
    def dim(self) -> int:
        """Number of coordinates of z."""
        return len(self.names)

    def gamma(self, z: Vector) -> Float[Array, " n"]:
        """Gamma(z) (n,), the correction for state-dependent D and Q."""
        return row_divergence(lambda y: self.D(y) + self.Q(y), z)

    def drift(self, z: Vector) -> Float[Array, " n"]:
        """f(z) (n,)."""
        return -(self.D(z) + self.Q(z)) @ jax.grad(self.H)(z) + self.gamma(z)

    def generator(self, phi: ScalarField) -> ScalarField:
        """L phi = f . grad phi + sum_ij D_ij d_i d_j phi, again a function of z (so that it can be iterated)."""
        return lambda z: self.drift(z) @ jax.grad(phi)(z) + jnp.sum(self.D(z) * jax.hessian(phi)(z))

    def residual(self, z: Vector) -> Float[Array, ""]:
        """Fokker-Planck residual of the drift at z; zero everywhere iff exp(-H) is stationary."""
        return fokker_planck_residual(self.drift, self.D, self.H, z)


def fokker_planck_residual(drift: VectorField, D: MatrixField, H: ScalarField, z: Vector) -> Float[Array, ""]:
    """div J - J . grad H with J = f + D grad H - div D, which is zero iff exp(-H) is stationary for (f, D).

    Equals (1/p) [div(f p) - sum_ij d_i d_j (D_ij p)] with p = exp(-H), free of p itself. Needs no Q, so it decides
    stationarity from the drift and the diffusion alone (theorem 2 of ma2015complete).
    """

    def flux(y: Vector) -> Vector:
        return drift(y) + D(y) @ jax.grad(H)(y) - row_divergence(D, y)

    return jnp.trace(jax.jacfwd(flux)(z)) - flux(z) @ jax.grad(H)(z)


def coordinate_names(size: int, *auxiliaries: str, scalars: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Names of z = (theta, one block per auxiliary, scalars): `("theta[0]", ..., "r[0]", ..., "xi")`."""
    blocks = [f"{block}[{i}]" for block in ("theta", *auxiliaries) for i in range(size)]
    return (*blocks, *scalars)
