"""Minibatches that go through all data once an epoch, without replacement."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.interface.aliases import EstimatorState, Position
from sgmcmc_verification.samplers.interface.sampler import Estimate, Stateless
from sgmcmc_verification.samplers.validation import require
from sgmcmc_verification.targets.target import DataTerms

Order = Literal["reshuffled", "once", "symmetric"]


class Epoch(NamedTuple):
    """The data in the order of this epoch (K, n), and the number of its batches that have been used, an integer."""

    order: jax.Array
    used: jax.Array


@dataclass(frozen=True, eq=False)
class Epochs:
    """grad U_0 + K sum_{i in B} grad U_i over the K batches B of an epoch in turn, K n = N.

    The estimates of one epoch, all at one point, have the mean grad U exactly. One estimate alone is unbiased over the
    orders; it is not independent of the one before.

    Source: shaw2025reshuffling, random reshuffling; paulin2024symmetric, the sweep forth and back (`symmetric`).

    Args:
        terms: prior and datum potentials with the data.
        num_batches: K, a divisor of the number of data.
        order: `reshuffled` draws the order of the data anew in every epoch; `once` keeps that of the start; `symmetric`
            goes through the batches forth and then back, and draws the order anew after both.

    Raises:
        ValueError: if `num_batches` does not divide the number of data, or `order` is unknown.
    """

    terms: DataTerms
    num_batches: int
    order: Order = "reshuffled"

    def __post_init__(self) -> None:
        divides = self.num_batches >= 1 and self.terms.size % self.num_batches == 0
        require(divides, f"num_batches: must divide the number of data {self.terms.size}", self.num_batches)
        require(self.order in get_args(Order), f"order: must be one of {', '.join(get_args(Order))}", self.order)

    @property
    def period(self) -> int:
        """Number of estimates after which the count of batches reads the same."""
        return self.num_batches * (2 if self.order == "symmetric" and self.num_batches > 1 else 1)

    @property
    def _batches(self) -> Minibatch:
        return Minibatch(self.terms, self.terms.size // self.num_batches, replace=False)

    def drawn(self, key: jax.Array) -> jax.Array:
        """A uniform order of the data, (K, n); of one batch there is one."""
        data = jnp.arange(self.terms.size)
        shuffled = data if self.num_batches == 1 else jax.random.permutation(key, data)
        return shuffled.reshape(self.num_batches, -1)

    def init(self, key: jax.Array, position: Position) -> Epoch:
        """The order of the first epoch, of which no batch was used."""
        del position
        return Epoch(self.drawn(key), jnp.zeros((), jnp.int32))

    def estimate(self, key: jax.Array, estate: Epoch, position: Position) -> tuple[Estimate, Epoch]:
        """Estimate of the next batch of the epoch, and the state after it."""
        back = self.period - 1 - estate.used
        place = jnp.minimum(estate.used, back) if self.order == "symmetric" else estate.used
        estimate = self._batches.at(estate.order[place], position)
        used = (estate.used + 1) % self.period
        if self.order == "once" or self.num_batches == 1:
            return estimate, Epoch(estate.order, used)
        return estimate, Epoch(jnp.where(used == 0, self.drawn(key), estate.order), used)


@dataclass(frozen=True, eq=False)
class OneBatch(Stateless):
    """The estimate of one minibatch in every step: the steps of which epochs are made.

    Args:
        terms: prior and datum potentials with the data.
        indices: of the data of the batch.
    """

    terms: DataTerms
    indices: tuple[int, ...]

    def estimate(self, key: jax.Array, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a position, and the next state of the estimator."""
        del key
        return Minibatch(self.terms, len(self.indices), replace=False).at(jnp.asarray(self.indices), position), estate
