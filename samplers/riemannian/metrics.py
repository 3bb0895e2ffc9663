"""Riemannian metrics for SGRLD and gSGRHMC: G^-1(theta) and its symmetric square root.

A metric works on the flat position theta (n,), in ravel order. Its divergence is never written: samplers derive it
by automatic differentiation (`samplers.dynamics.complete_recipe.row_divergence`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.dynamics.published import RECIPE_OFFSET
from sgmcmc_verification.samplers.interface.aliases import Scalar
from sgmcmc_verification.samplers.numerics.matrix_sqrt import positive_root
from sgmcmc_verification.samplers.validation import require_positive
from sgmcmc_verification.targets.target import Target


@runtime_checkable
class Metric(Protocol):
    """A field of symmetric positive definite matrices on flat positions (n,)."""

    def inverse(self, theta: jax.Array) -> "jax.Array | Diagonal":
        """G^-1(theta), (n, n), an array or a `Diagonal`."""
        ...

    def inverse_sqrt(self, theta: jax.Array) -> "jax.Array | Diagonal":
        """B(theta) = G^-1/2(theta), (n, n), the symmetric square root of `inverse`."""
        ...


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False)
class Diagonal:
    """The matrix diag(entries) without its zeros, for metrics G^-1 = diag(g(theta_i)) of very many coordinates.

    Entry i may depend on theta_i alone, which `samplers.dynamics.complete_recipe.row_divergence` relies on. Products
    with vectors and matrices cost what they should; a multiple of it is a dense matrix.

    Args:
        entries: (n,).
    """

    entries: jax.Array

    __array_ufunc__ = None  # a NumPy matrix leaves products with it to `__rmatmul__`

    @property
    def separable_entries(self) -> jax.Array:
        """The diagonal."""
        return self.entries

    def __matmul__(self, other: jax.Array) -> jax.Array:
        return self.entries * other if jnp.ndim(other) == 1 else self.entries[:, None] * other

    def __rmatmul__(self, other: jax.Array) -> jax.Array:
        return other * self.entries

    def __rmul__(self, number: Scalar) -> jax.Array:
        return number * dense(self)

    def tree_flatten(self) -> tuple[tuple[jax.Array], None]:
        """Entries as the only child of the pytree."""
        return (self.entries,), None

    @classmethod
    def tree_unflatten(cls, auxiliary: None, children: tuple[jax.Array]) -> "Diagonal":
        """Matrix from its entries."""
        del auxiliary
        return cls(*children)


def dense(matrix: jax.Array | Diagonal) -> jax.Array:
    """An array (n, n) from what a metric returns."""
    return jnp.diag(matrix.entries) if isinstance(matrix, Diagonal) else matrix


def wave(theta: jax.Array) -> jax.Array:
    """1 + sin((theta_i + theta_{i+1}) / 2) / 2, indices cyclic: between 1/2 and 3/2, coupling the coordinates."""
    return 1.0 + 0.5 * jnp.sin(0.5 * (theta + jnp.roll(theta, -1)))


@dataclass(frozen=True, eq=False)
class DiagonalMetric:
    """G^-1 = diag(g(theta)) with any smooth positive g.

    Args:
        diagonal: theta (n,) -> g(theta) (n,), positive; each entry may depend on all coordinates.
    """

    diagonal: Callable[[jax.Array], jax.Array] = wave

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1(theta), (n, n)."""
        return jnp.diag(self.diagonal(theta))

    def inverse_sqrt(self, theta: jax.Array) -> jax.Array:
        """B(theta) = G^-1/2(theta), (n, n)."""
        return jnp.diag(jnp.sqrt(self.diagonal(theta)))


@dataclass(frozen=True)
class NonHessian2D:
    """A full 2 x 2 metric that is not the Hessian of any function: G^-1 = B B with

        B = [[3/2 + sin((x + y) / 2) / 2, c], [c, 6/5 + 2/5 cos(y / 2)]],  c = 3/10 cos((x - y) / 2),

    symmetric positive definite everywhere (eigenvalues of B between 0.58 and 2.2). For a Hessian metric the correction
    of girolami2011riemann and Gamma of ma2015complete agree; here they differ, so a test can tell them apart.
    Elementary functions only, so that the matrices can be translated to a computer algebra system.
    """

    def inverse_sqrt(self, theta: jax.Array) -> jax.Array:
        """B(theta) = G^-1/2(theta), (n, n)."""
        x, y = 0.5 * theta[0], 0.5 * theta[1]
        off = 0.3 * jnp.cos(x - y)
        return jnp.stack(
            [
                jnp.stack([1.5 + 0.5 * jnp.sin(x + y), off]),
                jnp.stack([off, 1.2 + 0.4 * jnp.cos(y)]),
            ]
        )

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1(theta), (n, n)."""
        root = self.inverse_sqrt(theta)
        return root @ root


@dataclass(frozen=True)
class PositiveMetric:
    """G^-1 = diag(theta) on (0, inf)^n, the metric of the expanded-mean parameterisation.

    Source: patterson2013stochastic, the expanded-mean parameterisation of the simplex.
    """

    def inverse(self, theta: jax.Array) -> Diagonal:
        """G^-1(theta), (n, n)."""
        return Diagonal(theta)

    def inverse_sqrt(self, theta: jax.Array) -> Diagonal:
        """B(theta) = G^-1/2(theta), (n, n)."""
        return Diagonal(jnp.sqrt(theta))


@dataclass(frozen=True)
class FlatMetric:
    """G = I: Euclidean Langevin and Hamiltonian dynamics, for the reflections that the Riemannian samplers have."""

    def inverse(self, theta: jax.Array) -> Diagonal:
        """G^-1(theta), (n, n)."""
        return Diagonal(jnp.ones_like(theta))

    inverse_sqrt = inverse


class SymmetricRoot:
    """`inverse_sqrt` from `inverse`, by the closed form for 2 x 2 matrices, else by eigenvalues."""

    inverse: Callable[[jax.Array], jax.Array]

    def inverse_sqrt(self, theta: jax.Array) -> jax.Array:
        """sqrt(A) = (A + s I) / sqrt(tr A + 2 s), s = sqrt(det A), for 2 x 2."""
        A = self.inverse(theta)
        if A.shape[0] == 2:
            s = jnp.sqrt(A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])
            return (A + s * jnp.eye(2, dtype=A.dtype)) / jnp.sqrt(A[0, 0] + A[1, 1] + 2 * s)
        return positive_root(A)


@dataclass(frozen=True)
class ReducedMeanMetric(SymmetricRoot):
    """G^-1 = (diag theta - theta theta^T) / N, theta = (pi_1, .., pi_{K-1}): inverse Fisher information of N labels.

    Source: patterson2013stochastic, section 4 (reduced mean).

    Args:
        total: N, the number of labels.
    """

    total: float

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1(theta), (n, n)."""
        return (jnp.diag(theta) - jnp.outer(theta, theta)) / self.total


@dataclass(frozen=True)
class ReducedNaturalMetric(SymmetricRoot):
    """G^-1 = (diag 1/pi + 1 1^T / pi_K) / N, theta_k = log(pi_k / pi_K).

    Source: patterson2013stochastic, section 4 (reduced natural).

    Args:
        total: N, the number of labels.
    """

    total: float

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1(theta), (n, n)."""
        whole = 1 + jnp.sum(jnp.exp(theta))  # 1 / pi_K
        one = jnp.ones((theta.shape[0], theta.shape[0]), theta.dtype)
        return whole * (jnp.diag(jnp.exp(-theta)) + one) / self.total


@dataclass(frozen=True)
class ExpandedNaturalMetric:
    """G^-1 = diag(e^-theta), pi = softmax(theta); that of the expanded mean is `PositiveMetric`.

    Source: patterson2013stochastic, section 4 (expanded natural).
    """

    def inverse(self, theta: jax.Array) -> Diagonal:
        """G^-1(theta), (n, n)."""
        return Diagonal(jnp.exp(-theta))

    def inverse_sqrt(self, theta: jax.Array) -> Diagonal:
        """B(theta) = G^-1/2(theta), (n, n)."""
        return Diagonal(jnp.exp(-theta / 2))


@dataclass(frozen=True, eq=False)
class RecipeMetric:
    """G^-1 = D sqrt(|U(theta) + C|) I: larger steps where the density is low.

    Source: ma2015complete, section 4.1. The form and the constants D = 1.5 and C = 0.5 are in the supplement of the
    source, which was not at hand: that they are these, and that it is G^-1 rather than G, is from memory. Differs
    from the source in:
        1. U is the exact potential, not its stochastic estimate, so that G depends on theta alone.

    Args:
        target: gives U, with the constant that `target.potential` has.
        scale: D > 0.
        offset: C. The metric is smooth only where U + C > 0: take an offset above -min U, such as 1.5 for the double
            well theta^4 - 2 theta^2, whose minimum is -1.

    Raises:
        ValueError: if `scale` is not positive.
    """

    target: Target
    scale: float = 1.5
    offset: float = 0.5

    def __post_init__(self) -> None:
        require_positive(self, "scale")

    def factor(self, theta: jax.Array) -> jax.Array:
        """D sqrt(|U(theta) + C|), a scalar."""
        return self.scale * jnp.sqrt(jnp.abs(self.target.flat_potential(theta) + self.offset))

    def inverse(self, theta: jax.Array) -> jax.Array:
        """G^-1(theta), (n, n)."""
        return self.factor(theta) * jnp.eye(theta.shape[0], dtype=theta.dtype)

    def inverse_sqrt(self, theta: jax.Array) -> jax.Array:
        """B(theta) = G^-1/2(theta), (n, n)."""
        return jnp.sqrt(self.factor(theta)) * jnp.eye(theta.shape[0], dtype=theta.dtype)


def recipe_metric(target: Target) -> RecipeMetric:
    """The metric of the recipe paper for a row: smooth on the double well."""
    return RecipeMetric(target, offset=RECIPE_OFFSET)
