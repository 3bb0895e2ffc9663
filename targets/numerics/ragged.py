"""Rows of counts with few entries that are not zero, of different lengths: users, documents."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Integer


class SparseRows(NamedTuple):
    """n rows of counts of d categories, without padding.

    Attributes:
        starts: (n + 1,) int64; row i has the entries `starts[i]` to `starts[i + 1] - 1`.
        columns: (entries,) int32 in 0..d-1, no column twice in a row.
        counts: (entries,) float64, positive.
        width: d.
    """

    starts: Integer[np.ndarray, " rows_and_one"]
    columns: Integer[np.ndarray, " entries"]
    counts: Float[np.ndarray, " entries"]
    width: int

    @property
    def size(self) -> int:
        """n."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> Integer[np.ndarray, " n"]:
        """(n,) entries of each row."""
        return np.diff(self.starts)

    def take(self, rows: Integer[np.ndarray, " m"]) -> "SparseRows":
        """The rows (m,) with these numbers, in their order."""
        starts, entries = gathered(self.starts, np.asarray(rows))
        return SparseRows(starts, self.columns[entries], self.counts[entries], self.width)

    def dense(self) -> Float[np.ndarray, "n d"]:
        """(n, d)."""
        table = np.zeros((self.size, self.width))
        table[np.repeat(np.arange(self.size), self.lengths), self.columns] = self.counts
        return table


def gathered(
    starts: Integer[np.ndarray, " n"], rows: Integer[np.ndarray, " m"]
) -> tuple[Integer[np.ndarray, " m+1"], Integer[np.ndarray, " entries"]]:
    """Starts (m + 1,) of the rows (m,) put one after the other, and the numbers of their entries in the old order."""
    lengths = starts[rows + 1] - starts[rows]
    new = np.concatenate([[0], np.cumsum(lengths)])
    return new, np.repeat(starts[rows] - new[:-1], lengths) + np.arange(new[-1])


def sparse_rows(table: Iterable[Sequence[float]] | np.ndarray) -> SparseRows:
    """Rows from a dense table (n, d) of counts.

    Raises:
        ValueError: if the table has not two dimensions, or a count is negative or not finite.
    """
    dense = np.asarray(table, np.float64)
    if dense.ndim != 2:
        raise ValueError(f"table: has shape {dense.shape}; give (rows, categories)")
    if not np.all(np.isfinite(dense)) or np.any(dense < 0):
        raise ValueError("table: counts must be finite and not negative")
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense) + 1))
    return SparseRows(starts, columns.astype(np.int32), dense[rows, columns], dense.shape[1])
