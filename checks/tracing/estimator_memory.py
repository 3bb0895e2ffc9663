"""A step whose estimator remembers the points at which it saw each datum."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import NotApplicable
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.samplers.estimators.basic import Minibatch
from sgmcmc_verification.samplers.interface.capabilities import AnchoredEstimator
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.targets.target import DataTerms, Target

BATCH = 2
"""Data of a minibatch."""


LARGE_STEP = 3.0
"""Times the usual step size: the memory of an estimator shows in terms of order h^2."""


class Points(NamedTuple):
    """Position of the last evaluation of every datum (N, ...), and the number of steps since a snapshot."""

    positions: Any
    age: jax.Array


@dataclass(frozen=True, eq=False)
class PointMemory:
    """An estimator that corrects its minibatch by gradients at other points, by its definition.

        grad U_0(x) + (N/n) sum_{i in S} (grad U_i(x) - grad U_i(phi_i)) + sum_i grad U_i(phi_i)

    It keeps the points phi_i, and computes every gradient when it is needed: an oracle for estimators that keep
    gradients and their sums up to date. The points are a fixed centre (baker2019control, section 2.2), or are moved:
    phi_i <- x for i in S after the estimate (dubey2016variance, Algorithm 1), or phi_i <- x for all i before every m-th
    one (Algorithm 2).

    Args:
        terms: prior and datum potentials with the data.
        batch_size: n, drawn without replacement.
        centre: where the points start and stay; None for the first position.
        table: move the points of the minibatch.
        period: m; 1 for no snapshots.
    """

    terms: DataTerms
    batch_size: int
    centre: Any = None
    table: bool = False
    period: int = 1

    def init(self, key, position):
        """First state of the estimator."""
        del key
        start = position if self.centre is None else jax.tree.map(jnp.asarray, self.centre)
        return Points(self._everywhere(start), jnp.zeros((), jnp.int32))

    def _everywhere(self, position):
        return jax.tree.map(lambda x: jnp.stack([x] * self.terms.size), position)

    def estimate(self, key, estate, position):
        """Estimate at a position, and the next state of the estimator."""
        subsets = jnp.asarray(Minibatch(self.terms, self.batch_size, replace=False).indices())
        chosen = subsets[jax.random.randint(key, (), 0, len(subsets))]
        points, here = estate.positions, self._everywhere(position)
        if self.period > 1:
            points = jax.tree.map(lambda x, phi: jnp.where(estate.age == self.period, x, phi), here, points)
        gradient = jax.vmap(jax.grad(self.terms.datum))
        fresh, stored = gradient(here, self.terms.data), gradient(points, self.terms.data)
        drawn = jnp.zeros(self.terms.size).at[chosen].set(1.0)

        def total(prior, new, old):
            weights = drawn.reshape(-1, *[1] * (new.ndim - 1)).astype(new.dtype)
            return prior + jnp.sum(self.terms.size / self.batch_size * weights * (new - old) + old, axis=0)

        estimate = jax.tree.map(total, jax.grad(self.terms.prior)(position), fresh, stored)
        if self.table:
            points = jax.tree.map(lambda table, x: table.at[chosen].set(x), points, position)
        age = estate.age % self.period + 1 if self.period > 1 else estate.age
        return Estimate(estimate), Points(points, age)


def by_definition(estimator: Any) -> PointMemory:
    """The definition of an estimator, for minibatches of `BATCH` data. Raises NotApplicable if it has no memory."""
    if not isinstance(estimator, AnchoredEstimator):
        raise NotApplicable("the estimator of this row has no memory")
    fields: Any = estimator
    match estimator.anchors:
        case "table":
            return PointMemory(fields.terms, BATCH, table=True)
        case "snapshot":
            return PointMemory(fields.terms, BATCH, period=fields.epoch_length)
        case "centre":
            return PointMemory(fields.terms, BATCH, centre=fields.centre)
    raise NotApplicable(f"no definition of the anchors {estimator.anchors}")


def with_memory(subject: Subject, target: Target) -> tuple[JaxStep | HostStep, JaxStep | HostStep, float]:
    """The step with minibatches of the row's own estimator, the same with its definition, and a step size."""
    estimator: Any = subject.estimator(target)  # a dataclass with a batch size
    reference = step_map(subject, target, by_definition(estimator))
    own = step_map(subject, target, dataclasses.replace(estimator, batch_size=BATCH, replace=False))
    return own, reference, LARGE_STEP * subject.step_size(target)
