"""SAGA: a gradient estimator with a table of the last gradient of every datum, and SGLD with it (SAGA-LD)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import Row, langevin_row, plain
from sgmcmc_verification.samplers.estimators.basic import terms_of
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import Source
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.overdamped.variance_reduced import (
    AnchoredMinibatch,
    VarianceReducedSGLD,
    datum_gradients,
)
from sgmcmc_verification.targets.target import DataTerms, Target


class SAGATable(NamedTuple):
    """The stored gradients g_i (pytree with a leading axis N) and their sum."""

    gradients: Tree
    total: Tree


@dataclass(frozen=True, eq=False)
class SAGA(AnchoredMinibatch):
    """grad U_0 + (N/n) sum_{i in S} (grad U_i - g_i) + sum_i g_i, then g_i <- grad U_i for i in S.

    Unbiased whatever the table holds. A state costs the memory of N gradients, and `init` computes all of them.

    Source: dubey2016variance, Algorithm 1 (SAGA-LD), with gradients of U = -log density.

    Args:
        terms: prior and datum potentials with the data.
        batch_size: n.
        replace: draw with replacement (independent, uniform), else a uniform subset.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and N.
    """

    terms: DataTerms
    batch_size: int
    replace: bool = True

    anchors: ClassVar[str] = "table"

    def init(self, key: jax.Array, position: Position) -> SAGATable:
        """Table of the gradients of all data at a position."""
        del key
        gradients = datum_gradients(self.terms, position)
        return SAGATable(gradients, jax.tree.map(lambda g: jnp.sum(g, axis=0), gradients))

    def at(self, indices: jax.Array, estate: SAGATable, position: Position) -> tuple[Estimate, SAGATable]:
        """The estimate and the new table for given indices (n,)."""
        fresh = datum_gradients(self.terms, position, indices)
        change = jax.tree.map(lambda new, table: new - table[indices], fresh, estate.gradients)
        # a datum that was drawn twice enters the estimate twice but changes the table once
        first = jnp.sum(jnp.tril(indices[:, None] == indices[None, :], -1), axis=1) == 0
        scale = self.terms.size / self.batch_size
        prior = jax.grad(self.terms.prior)(position)
        gradient = jax.tree.map(lambda p, c, total: p + scale * jnp.sum(c, axis=0) + total, prior, change, estate.total)
        once = jax.tree.map(lambda c: jnp.where(first.reshape(-1, *[1] * (c.ndim - 1)), c, 0), change)
        total = jax.tree.map(lambda t, c: t + jnp.sum(c, axis=0), estate.total, once)
        # added, not set: a table that is only added to is updated in place inside of a loop, one that is set is copied
        table = jax.tree.map(lambda old, c: old.at[indices].add(c), estate.gradients, once)
        return Estimate(gradient), SAGATable(table, total)

    def estimate(self, key: jax.Array, estate: SAGATable, position: Position) -> tuple[Estimate, SAGATable]:
        """Estimate at a position, and the next state of the estimator."""
        return self.at(self.minibatch.draw(key), estate, position)


@dataclass(frozen=True)
class SAGALD(VarianceReducedSGLD):
    """SGLD for the `SAGA` estimator: theta' = theta - h grad U~(theta) + N(0, 2 h T).

    The kernel is that of `SGLD`; the variance reduction is in the estimator, whose table travels in the state.

    Source: dubey2016variance, Algorithm 1, with h = (step of the source) / 2. Differs from the source in:
        1. the temperature T.

    Args:
        temperature: T > 0; the law is exp(-U / T).
        compensate: must be False: the estimator returns no covariance.

    Error: weak order 1 and invariant law O(h) for exact gradients. The law of `position` alone is meant: the table
    is part of the Markov chain.

    Raises:
        ValueError: if `temperature` is not positive, or `compensate` is set.
    """

    source: ClassVar[Source] = Source("dubey2016variance", "Algorithm 1")


def full_saga(target: Target) -> SAGA:
    """SAGA with all data in every batch."""
    terms = terms_of(target)
    return SAGA(terms, terms.size, replace=False)


ENTRIES: tuple[Row, ...] = (
    langevin_row("saga-ld", plain(SAGALD), targets=("tiny-gaussian-data",), estimator=full_saga),
)
