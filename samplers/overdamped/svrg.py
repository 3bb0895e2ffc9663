"""SVRG: a gradient estimator corrected at a snapshot of the chain, and SGLD with it (SVRG-LD)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.entry import REGRESSION, Row, langevin_row, plain
from sgmcmc_verification.samplers.estimators.basic import terms_of
from sgmcmc_verification.samplers.interface.aliases import Position, Tree
from sgmcmc_verification.samplers.interface.claims import Source
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.overdamped.variance_reduced import (
    AnchoredMinibatch,
    VarianceReducedSGLD,
    corrected_gradient,
    total_gradient,
)
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import DataTerms, Target


class Snapshot(NamedTuple):
    """Position of the snapshot, sum_i grad U_i there (both like the position), and its age in steps (integer)."""

    position: Position
    total: Tree
    age: jax.Array


@dataclass(frozen=True, eq=False)
class SVRG(AnchoredMinibatch):
    """grad U_0(x) + sum_i grad U_i(s) + (N/n) sum_{i in S} (grad U_i(x) - grad U_i(s)), s <- x every m-th estimate.

    Unbiased whatever s is. Covariance: see `samplers.overdamped.variance_reduced.corrected_gradient`. A snapshot costs
    the gradients of all data, other steps 2 n; where chains are mapped by `jax.vmap`, which has no branches, every step
    costs all of them.

    Source: dubey2016variance, Algorithm 2 (SVRG-LD), with gradients of U = -log density; the snapshot of an epoch is
    the last iterate of the one before.

    Args:
        terms: prior and datum potentials with the data.
        batch_size: n.
        epoch_length: m, the number of estimates from one snapshot.
        replace: draw with replacement (independent, uniform), else a uniform subset.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and N, or `epoch_length` is not a positive integer.
    """

    terms: DataTerms
    batch_size: int
    epoch_length: int
    replace: bool = True

    anchors: ClassVar[str] = "snapshot"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            isinstance(self.epoch_length, int) and self.epoch_length > 0,
            "epoch_length: must be a positive integer",
            self.epoch_length,
        )

    @property
    def period(self) -> int:
        """Steps after which the age of the snapshot is what it was."""
        return self.epoch_length

    def take(self, position: Position) -> Snapshot:
        """The snapshot of a position, of age 0."""
        return Snapshot(position, total_gradient(self.terms, position), jnp.zeros((), jnp.int32))

    def init(self, key: jax.Array, position: Position) -> Snapshot:
        """Snapshot of the first position."""
        del key
        return self.take(position)

    def renewed(self, estate: Snapshot, position: Position) -> Snapshot:
        """The snapshot that the next estimate uses: another one if this has served m of them."""
        return jax.lax.cond(estate.age >= self.epoch_length, lambda: self.take(position), lambda: estate)

    def at(self, indices: jax.Array, estate: Snapshot, position: Position) -> tuple[Estimate, Snapshot]:
        """The estimate for given indices (n,), and the snapshot afterwards."""
        used = self.renewed(estate, position)
        gradient = corrected_gradient(self.terms, indices, position, used.position, used.total)
        return Estimate(gradient), used._replace(age=used.age + 1)

    def estimate(self, key: jax.Array, estate: Snapshot, position: Position) -> tuple[Estimate, Snapshot]:
        """Estimate at a position, and the next state of the estimator."""
        return self.at(self.minibatch.draw(key), estate, position)


@dataclass(frozen=True)
class SVRGLD(VarianceReducedSGLD):
    """SGLD for the `SVRG` estimator: theta' = theta - h grad U~(theta) + N(0, 2 h T).

    The kernel is that of `SGLD`; the variance reduction is in the estimator, whose snapshot travels in the state.

    Source: dubey2016variance, Algorithm 2, with h = (step of the source) / 2. Differs from the source in:
        1. the temperature T.

    Args:
        temperature: T > 0; the law is exp(-U / T).
        compensate: must be False: the estimator returns no covariance.

    Error: weak order 1 and invariant law O(h) for exact gradients, and O(h) with minibatches. The law of `position`
    alone is meant, at every age of the snapshot: the snapshot is part of the Markov chain.

    Raises:
        ValueError: if `temperature` is not positive, or `compensate` is set.
    """

    source: ClassVar[Source] = Source("dubey2016variance", "Algorithm 2")


def full_svrg(target: Target) -> SVRG:
    """SVRG with all data in every batch, three steps an epoch."""
    terms = terms_of(target)
    return SVRG(terms, terms.size, epoch_length=3, replace=False)


ENTRIES: tuple[Row, ...] = (langevin_row("svrg-ld", plain(SVRGLD), targets=REGRESSION, estimator=full_svrg),)
