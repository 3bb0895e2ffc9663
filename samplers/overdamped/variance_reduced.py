"""SGLD with estimators of reduced variance: the kernel is that of SGLD, the noise that of the estimator.

An `AnchoredEstimator` says in `anchors` at which points its gradients are corrected: a `centre`, a `snapshot`, or a
`table` of the points where each datum was last evaluated.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import Claims, Source
from sgmcmc_verification.samplers.overdamped.sgld import SGLD
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import DataTerms


class AnchoredMinibatch:
    """The minibatches of an estimator that corrects them by gradients at an earlier position."""

    terms: DataTerms
    batch_size: int
    replace: bool

    def __post_init__(self) -> None:
        _ = self.minibatch  # raises for a bad batch size

    @property
    def minibatch(self) -> Minibatch:
        """Same data and batch size, without correction."""
        return Minibatch(self.terms, self.batch_size, self.replace)


def _data(terms: DataTerms, indices: jax.Array | None) -> Tree:
    """The data of `indices` (n,), all if None."""
    return jax.tree.map(lambda a: jnp.asarray(a) if indices is None else jnp.asarray(a)[indices], terms.data)


def datum_gradients(terms: DataTerms, position: Position, indices: jax.Array | None = None) -> Tree:
    """grad U_i for i in `indices` (n,), all data if None: a pytree like the position with a leading axis."""
    return jax.vmap(jax.grad(terms.datum), (None, 0))(position, _data(terms, indices))


def total_gradient(terms: DataTerms, position: Position, indices: jax.Array | None = None) -> Tree:
    """sum of grad U_i over i in `indices` (n,), all data if None: a pytree like the position.

    It is the gradient of the sum: one transposed product with the data, where a gradient for each datum would write
    n of them first.
    """
    data = _data(terms, indices)
    return jax.grad(lambda x: jnp.sum(jax.vmap(terms.datum, (None, 0))(x, data)))(position)


def corrected_gradient(terms: DataTerms, indices: jax.Array, position: Position, anchor: Position, total: Tree) -> Tree:
    """grad U_0(x) + sum_i grad U_i(a) + (N/n) sum_{i in S} (grad U_i(x) - grad U_i(a)), with a = `anchor`.

    Unbiased for grad U(x), whatever a is, if `total` is sum_i grad U_i(a). With d_i = grad U_i(x) - grad U_i(a) its
    covariance is (N/n) sum_i (d_i - mean d)(d_i - mean d)^T over all data for batches drawn with replacement, and
    (N - n)/(N - 1) times that without: zero where x = a, and everywhere if all data have one Hessian.

    Args:
        terms: prior and datum potentials with the data.
        indices: S, (n,).
        position: x.
        anchor: a, like x.
        total: see above, like x.
    """
    scale = terms.size / indices.shape[0]
    new, old = (total_gradient(terms, at, indices) for at in (position, anchor))
    return jax.tree.map(
        lambda prior, full, x, a: prior + full + scale * (x - a),
        jax.grad(terms.prior)(position),
        total,
        new,
        old,
    )


@dataclass(frozen=True)
class VarianceReducedSGLD(SGLD):
    """SGLD for an estimator that reports no covariance; subclasses name their source."""

    source: ClassVar[Source]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not self.compensate, "compensate: the estimator returns no covariance", self.compensate)

    @property
    def claims(self) -> Claims:
        """Properties that the checks test."""
        return super().claims.amended(source=self.source, conditions=("exact gradient",))
