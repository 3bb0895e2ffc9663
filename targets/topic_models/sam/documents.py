"""Documents of a spherical model: sparse rows, and what is multiplied with them."""

from typing import Any

import numpy as np

from sgmcmc_verification.targets.numerics.ragged import SparseRows


def as_rows(documents: SparseRows | np.ndarray) -> SparseRows:
    """Sparse rows of documents (D, V) that may be dense; entries may be negative here, unlike those of counts.

    Raises:
        ValueError: if an array has not two dimensions, or an entry is not finite.
    """
    if isinstance(documents, SparseRows):
        return documents
    dense = np.asarray(documents, np.float64)
    if dense.ndim != 2 or not np.all(np.isfinite(dense)):
        raise ValueError(f"documents: must be finite numbers (documents, words), got shape {dense.shape}")
    D, V = dense.shape
    return SparseRows(np.arange(D + 1) * V, np.tile(np.arange(V, dtype=np.int32), D), dense.ravel(), V)


def matrix(rows: SparseRows) -> Any:
    """The rows as a sparse matrix (D, V), for products."""
    from scipy import sparse

    return sparse.csr_array((rows.counts, rows.columns, rows.starts), (rows.size, rows.width))
