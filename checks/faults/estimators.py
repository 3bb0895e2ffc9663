"""Planted bugs of estimators with a memory, which show only with minibatches and only in what the table does."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sgmcmc_verification.checks.faults.fault import Defect, Kill, planted
from sgmcmc_verification.samplers.interface.sampler import Estimate
from sgmcmc_verification.samplers.overdamped.control_variates import SGLDCV, ControlVariates, full_control_variates
from sgmcmc_verification.samplers.overdamped.saga import SAGA, SAGALD, SAGATable, full_saga
from sgmcmc_verification.samplers.overdamped.svrg import SVRG, SVRGLD, full_svrg
from sgmcmc_verification.samplers.overdamped.variance_reduced import datum_gradients
from sgmcmc_verification.targets.target import DataTerms, Target

LIMIT = "pi_h -> pi as h -> 0"
RECURSION = "E z_n and Cov z_n are those of the definition"
MEMORY = "E z_n and E z_n z_n^T are those of the recursion of position and table"


@dataclasses.dataclass(frozen=True, eq=False)
class NeverUpdated(SAGA):
    """The table stays as it was at the start: unbiased, without the variance of a table of mixed ages."""

    def at(self, indices, estate, position):
        estimate, _ = super().at(indices, estate, position)
        return estimate, estate


@dataclasses.dataclass(frozen=True, eq=False)
class UpdatedFirst(SAGA):
    """The table is updated before it is used, so that the change is zero and the estimate its sum: biased."""

    def at(self, indices, estate, position):
        _, table = super().at(indices, estate, position)
        return super().at(indices, table, position)


@dataclasses.dataclass(frozen=True, eq=False)
class SumForgotten(SAGA):
    """The stored sum is not updated with the table."""

    def at(self, indices, estate, position):
        estimate, table = super().at(indices, estate, position)
        return estimate, SAGATable(table.gradients, jax.tree.map(jnp.asarray, estate.total))


def batch_sum(terms: DataTerms, position, indices):
    """sum_{i in S} grad U_i."""
    return jax.tree.map(lambda g: jnp.sum(g, axis=0), datum_gradients(terms, position, indices))


@dataclasses.dataclass(frozen=True, eq=False)
class CentreNotScaled(ControlVariates):
    """(N/n) sum_S grad U_i(x) - sum_S grad U_i(c): biased, and not at the level of all data."""

    def at(self, indices, estate, position):
        right = super().at(indices, estate, position).gradient
        excess = self.terms.size / self.batch_size - 1
        centre = batch_sum(self.terms, self.centre_like(position), indices)
        return Estimate(jax.tree.map(lambda g, c: g + excess * c, right, centre))


@dataclasses.dataclass(frozen=True, eq=False)
class PriorTimesBatches(ControlVariates):
    """(N/n) grad U_0: the prior counted with every minibatch, as if it were one of the data."""

    def at(self, indices, estate, position):
        right = super().at(indices, estate, position).gradient
        excess = self.terms.size / self.batch_size - 1
        prior = jax.grad(self.terms.prior)(position)
        return Estimate(jax.tree.map(lambda g, p: g + excess * p, right, prior))


@dataclasses.dataclass(frozen=True, eq=False)
class CentreOfAnotherBatch(ControlVariates):
    """The gradients at the centre are of a batch of their own: unbiased, and the noise is added instead of removed."""

    def estimate(self, key, estate, position):
        first, second = (self.minibatch.draw(k) for k in jax.random.split(key))
        right = super().at(first, estate, position).gradient
        scale, centre = self.terms.size / self.batch_size, self.centre_like(position)
        own, other = (batch_sum(self.terms, centre, indices) for indices in (first, second))
        return Estimate(jax.tree.map(lambda g, a, b: g + scale * (a - b), right, own, other)), estate


@dataclasses.dataclass(frozen=True, eq=False)
class CentreSubtracted(ControlVariates):
    """- sum_i grad U_i(c) in place of + sum_i grad U_i(c)."""

    def at(self, indices, estate, position):
        return super().at(indices, jax.tree.map(jnp.negative, estate), position)


@dataclasses.dataclass(frozen=True, eq=False)
class NeverRenewed(SVRG):
    """One snapshot for ever: unbiased, with the noise of a snapshot that is too old."""

    def renewed(self, estate, position):
        return estate


@dataclasses.dataclass(frozen=True, eq=False)
class StaleTotal(SVRG):
    """The snapshot moves, the sum of its gradients stays."""

    def renewed(self, estate, position):
        return super().renewed(estate, position)._replace(total=estate.total)


@dataclasses.dataclass(frozen=True, eq=False)
class DifferenceNotScaled(SVRG):
    """sum_S (grad U_i(x) - grad U_i(s)) without N/n."""

    def at(self, indices, estate, position):
        estimate, used = super().at(indices, estate, position)
        excess = self.terms.size / self.batch_size - 1
        new, old = (batch_sum(self.terms, at, indices) for at in (position, used.position))
        return Estimate(jax.tree.map(lambda g, x, s: g - excess * (x - s), estimate.gradient, new, old)), used


def of_kind(kind: type, full: Callable[[Target], Any]) -> Callable[[Target], Any]:
    """The estimator of a row, of another kind."""
    return lambda target: kind(**vars(full(target)))


def _corrected(name: str, kind: type, error: str, check: str, equation: str, diagnosis: str = "") -> Defect:
    """A planted bug of SGLD-CV or SVRG-LD."""
    base, sampler, full = (
        ("sgld-cv", SGLDCV, full_control_variates)
        if issubclass(kind, ControlVariates)
        else ("svrg-ld", SVRGLD, full_svrg)
    )
    kill = Kill(check, "tiny-regression", equation)
    classes, estimator = ("gradient-noise", "data"), of_kind(kind, full)
    return planted(name, base, sampler, error, kill, *classes, diagnosis=diagnosis, estimator=estimator)


SAGA_DEFECTS = tuple(
    planted(
        name,
        "saga-ld",
        SAGALD,
        error,
        Kill("estimator_memory", "tiny-gaussian-data", MEMORY),
        "gradient-noise",
        "state",
        estimator=of_kind(kind, full_saga),
    )
    for name, kind, error in (
        ("saga-table-never-updated", NeverUpdated, "the table keeps the gradients of the start"),
        ("saga-table-updated-first", UpdatedFirst, "g_i <- grad U_i before the estimate is formed, not after it"),
        ("saga-sum-forgotten", SumForgotten, "sum_i g_i is not updated with the table"),
    )
)
CORRECTED = (
    _corrected(
        "cv-centre-not-scaled",
        CentreNotScaled,
        "the gradients of the batch at the centre are not multiplied by N/n",
        "estimator_for_every_potential",
        "E g = grad U over all batches",
    ),
    _corrected(
        "cv-prior-times-batches",
        PriorTimesBatches,
        "the gradient of the prior is multiplied by N/n, with that of the minibatch",
        "minibatch_limit",
        LIMIT,
    ),
    _corrected(
        "cv-centre-of-another-batch",
        CentreOfAnotherBatch,
        "the gradients at the centre are those of another batch",
        "estimator_recursion",
        RECURSION,
    ),
    _corrected(
        "cv-centre-sign",
        CentreSubtracted,
        "- sum_i grad U_i(c) for + sum_i grad U_i(c)",
        "gaussian_limit",
        LIMIT,
        diagnosis=r"constant is added to the drift",
    ),
    _corrected(
        "svrg-never-renewed",
        NeverRenewed,
        "the snapshot stays where the chain started",
        "estimator_recursion",
        RECURSION,
    ),
    _corrected(
        "svrg-stale-total",
        StaleTotal,
        "the sum of gradients is not computed again when the snapshot moves",
        "estimator_recursion",
        RECURSION,
    ),
    _corrected(
        "svrg-difference-not-scaled",
        DifferenceNotScaled,
        "the difference of the gradients of the batch is not multiplied by N/n",
        "minibatch_limit",
        LIMIT,
    ),
)
DEFECTS: tuple[Defect, ...] = (*SAGA_DEFECTS, *CORRECTED)
