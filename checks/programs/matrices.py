"""Decompositions of matrices in JAX that have one value, by NumPy: those with a choice of signs are left to XLA."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sgmcmc_verification.checks.programs.elementwise import Rule, Values, of_inputs


def _cholesky(a: np.ndarray) -> np.ndarray:
    """L of the lower triangle; of a matrix that is not positive definite it is not a number, as XLA has it."""
    found = np.full_like(a, np.nan)
    for place in np.ndindex(a.shape[:-2]):
        try:
            found[place] = np.linalg.cholesky(a[place])
        except np.linalg.LinAlgError:
            found[place] = np.where(np.tri(a.shape[-1], dtype=bool), np.nan, 0.0)
    return found


def _triangular_solve(inputs: Values, params: Mapping[str, Any]) -> Values:
    a, b = inputs
    a = np.tril(a) if params["lower"] else np.triu(a)
    if params["unit_diagonal"]:
        a = np.where(np.eye(a.shape[-1], dtype=bool), np.ones((), a.dtype), a)
    a = a.mT if params["transpose_a"] else a
    return [np.linalg.solve(a, b) if params["left_side"] else np.linalg.solve(a.mT, b.mT).mT]


RULES: Mapping[str, Rule] = {"cholesky": of_inputs(_cholesky), "triangular_solve": _triangular_solve}
"""The rule of each decomposition that NumPy evaluates."""
