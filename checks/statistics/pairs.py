"""Sums over all pairs of a sample in tiles: U- and V-statistics and their bootstrap."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

Statistic = Literal["U", "V"]
Tile = Callable[[slice, slice], Float[np.ndarray, "rows columns"]]
"""Rows and columns -> the block u(x_i, x_j) of a symmetric kernel."""


class Tested(NamedTuple):
    """A discrepancy with the p-value of its bootstrap.

    Attributes:
        value: the U- or V-statistic.
        p: (1 + number of replicates that are at least as large) / (1 + number of replicates).
        replicates: of the bootstrap, on the scale of `value`.
    """

    value: float
    p: float
    replicates: Float[np.ndarray, " B"]


def require_statistic(statistic: str) -> None:
    """Raise ValueError unless it is U or V."""
    if statistic not in ("U", "V"):
        raise ValueError(f"statistic is {statistic!r}: give U or V")


def pair_statistic(tile: Tile, n: int, statistic: Statistic, block: int) -> float:
    """The mean of u over the pairs i != j (U) or over all pairs (V); the memory is O(block^2)."""
    return _sums(tile, n, statistic, block, np.zeros((n, 0)))[0]


def bootstrap(
    tile: Tile, n: int, statistic: Statistic, block: int, replicates: int, generator: np.random.Generator
) -> Tested:
    """Test of E u = 0 for a kernel that is degenerate under the null hypothesis, E u(x, .) = 0.

        U:  sum_{i != j} (w_i - 1/n) (w_j - 1/n) u_ij,  n w multinomial          (multinomial bootstrap)
        V:  (1/n^2) sum_{i, j} s_i s_j u_ij,  s_i = +-1 with probability 1/2      (wild bootstrap)

    have, as n grows, the law of the statistic under the null hypothesis, for i.i.d. samples. One pass over the tiles
    does all replicates; the memory is O(block^2 + n replicates).

    Source: liu2016kernelized, equations (14) and (15) (U); chwialkowski2016kernel, section 3 (V, without the memory
    that dependent samples need).

    Raises:
        ValueError: fewer than one replicate.
    """
    if replicates < 1:
        raise ValueError(f"replicates is {replicates}: give a positive number")
    if statistic == "U":
        factors = generator.multinomial(n, np.full(n, 1 / n), replicates).T / n - 1 / n
    else:
        factors = (2.0 * generator.integers(0, 2, (n, replicates)) - 1) / n
    value, found = _sums(tile, n, statistic, block, factors)
    return Tested(value, float((1 + np.count_nonzero(found >= value)) / (1 + replicates)), found)


def _sums(
    tile: Tile, n: int, statistic: Statistic, block: int, factors: Float[np.ndarray, "n B"]
) -> tuple[float, Float[np.ndarray, " B"]]:
    """(the statistic, sum_ij f_i f_j u_ij for every column f of `factors` (n, B)), without i = j for U."""
    total, weighted = 0.0, np.zeros(factors.shape[1])
    for i in range(0, n, block):
        for j in range(i, n, block):
            a, b = slice(i, min(i + block, n)), slice(j, min(j + block, n))
            values = tile(a, b)
            if i == j and statistic == "U":
                np.fill_diagonal(values, 0.0)
            times = 1 if i == j else 2
            total += times * float(np.sum(values))
            if weighted.size:
                weighted += times * np.sum(factors[a] * (values @ factors[b]), axis=0)
    return total / (n * (n - 1) if statistic == "U" else n * n), weighted
