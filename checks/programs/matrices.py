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
        a = a + np.eye(a.shape[-1], dtype=a.dtype) - np.eye(a.shape[-1], dtype=a.dtype) * a
    turned = np.swapaxes
    a = turned(a, -1, -2) if params["transpose_a"] else a
    if params["left_side"]:
        return [np.linalg.solve(a, b)]
    return [turned(np.linalg.solve(turned(a, -1, -2), turned(b, -1, -2)), -1, -2)]


RULES: Mapping[str, Rule] = {"cholesky": of_inputs(_cholesky), "triangular_solve": _triangular_solve}
"""The rule of each decomposition that NumPy evaluates."""
