"""The parts that the acceptance of a Metropolis kernel is made of."""

from collections.abc import Mapping, Sequence

import numpy as np

from sgmcmc_verification.checks.diagnosis.cause import CLOSE, Diagnosis, factor

WHAT = ("the difference of energies", "the ratio of proposal densities")


def ratio_of_acceptances(columns: np.ndarray, known: Mapping[str, float]) -> Diagnosis | None:
    """Coefficients of energy and proposal density in log a(x, y) - log a(y, x), which should be 1 and 1.

    log q of a Langevin proposal N(x - h g(x), 2 h T) has the cross term (y - x) . g(x) / (2 T) and a square that knows
    no sign: a gradient of the wrong sign in the density turns the cross term only.

    Args:
        columns: (4, P): (U(x) - U(y)) / T; log q(y, x) - log q(x, y); log a(x, y) - log a(y, x); and
            (y - x) . (g(x) + g(y)) / (2 T).
        known: numbers that a factor may turn out to be.

    Returns:
        The factors, if they explain all pairs (metropolis1953equation, hastings1970monte), else None.
    """
    energies, densities, ratios, cross = columns
    symmetric = np.abs(densities).max() <= CLOSE * (1 + np.abs(energies).max())
    found = _fit(ratios, [energies] if symmetric else [energies, densities])
    if found is not None:
        wrong = [_words(name, float(c), known) for name, c in zip(WHAT, found, strict=False) if abs(c - 1) > CLOSE]
        return Diagnosis("acceptance", "; ".join(wrong)) if wrong else None
    turned = _fit(ratios - energies - densities, [cross])
    if turned is not None and abs(turned[0] + 2) < CLOSE:
        return Diagnosis("acceptance", "the gradient has the wrong sign in the density of the proposal")
    return None


def _fit(values: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray | None:
    """Coefficients that explain all values, or None."""
    basis = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(basis) < len(columns):
        return None
    found = np.linalg.lstsq(basis, values, rcond=None)[0]
    return found if np.abs(values - basis @ found).max() <= CLOSE * (1 + np.abs(values).max()) else None


def _words(name: str, c: float, known: Mapping[str, float]) -> str:
    if abs(c) < CLOSE:
        return f"the acceptance lacks {name}"
    if abs(c + 1) < CLOSE:
        return f"{name} has the wrong sign in the acceptance"
    return f"{name} has the factor {factor(c, known)} in the acceptance"
