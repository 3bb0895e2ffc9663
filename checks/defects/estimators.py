"""Planted bugs of estimators with a memory, which show only with minibatches and only in what the table does."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from checks.defects.defect import Defect, Kill, planted
from samplers.registry import full_saga
from samplers.saga import SAGA, SAGALD, SAGATable
from targets.target import Target

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


def with_table(kind: type[SAGA]) -> Callable[[Target], Any]:
    """The estimator of the row of SAGA-LD, of another kind."""
    return lambda target: kind(**vars(full_saga(target)))


DEFECTS: tuple[Defect, ...] = tuple(
    planted(
        name,
        "saga-ld",
        SAGALD,
        error,
        Kill("estimator_memory", "tiny-gaussian-data", MEMORY),
        "gradient-noise",
        "state",
        estimator=with_table(kind),
    )
    for name, kind, error in (
        ("saga-table-never-updated", NeverUpdated, "the table keeps the gradients of the start"),
        ("saga-table-updated-first", UpdatedFirst, "g_i <- grad U_i before the estimate is formed, not after it"),
        ("saga-sum-forgotten", SumForgotten, "sum_i g_i is not updated with the table"),
    )
)
