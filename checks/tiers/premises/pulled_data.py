"""A target whose data pull coordinates: each that of its block, so that a move says which data were drawn.

The same potential may be a part of the prior instead, where the data do nothing. Entries of different rows, a feature
and the label of another, do nothing.
"""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.programs.trees import placed
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import DataTerms, Target

SIZE, BLOCKS = 70_001, 16
"""Data, a prime number of them that 16 bits do not count, and blocks of equal length that they fall into."""
LABELS = 3
"""Labels of rows, drawn at random: those of two rows agree once in three times, so that data enter all the same."""


class Noting(DataTerms):
    """Terms that note when their data are read."""

    reads: list[bool]

    @property
    def data(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The data."""
        self.reads.append(True)
        return self[2]


def pulled(pull: float, size: int = SIZE, by_prior: float = 0.0, blocks: int = BLOCKS) -> tuple[Target, list[bool]]:
    """U = |x|^2 / 2 + (pull + by_prior) / N * blocks * sum_i x[block of i], and the list that grows when data are read.

    With a block for each datum the pulls are not equal; the mean of them is. The part of `by_prior` in the sum is one
    of the prior, where the data do nothing.
    """
    block = np.arange(size) * blocks // size
    # one by one they pull unequally, so that what draws them by their gradients does not draw all alike
    each = np.linspace(0.25, 1.75, size) if blocks == size else np.full(size, blocks / size)
    whole = np.bincount(block, each, blocks)
    # a datum whose entries are not of one row pulls nothing
    rows = placed(np.random.default_rng(0).integers(0, LABELS, size))
    data = {"block": placed(block), "pull": placed(pull * each), "row": rows, "same": rows}
    prior = lambda x: jnp.sum(x**2) / 2 + by_prior * jnp.sum(jnp.asarray(whole, x.dtype) * x)
    terms = Noting(prior, _pull_of, data, size)
    terms.reads = []
    target = Target(
        name=f"pulled-{pull:g}",
        manifold=Euclidean(blocks),
        example=placed(np.full(blocks, 0.7)),
        potential=lambda x: jnp.sum(x**2) / 2 + (pull + by_prior) * jnp.sum(jnp.asarray(whole, x.dtype) * x),
        curvature=1.0,
        terms=terms,
    )
    return target, terms.reads


def _pull_of(x: Any, datum: Any) -> Any:
    return jnp.where(datum["row"] == datum["same"], datum["pull"], 0.0) * x[datum["block"]]


@lru_cache(maxsize=2)
def still(size: int) -> Target:
    """The same without a pull."""
    return pulled(0.0, size)[0]
