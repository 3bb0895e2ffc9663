"""Orders by least squares, with standard errors and confidence intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import statsmodels.api as sm

LEVEL = 0.95
FEWEST = 3
"""Points below which a line leaves nothing to estimate an error from."""


class OrderFit(NamedTuple):
    """Fit of log error = constant + order log h.

    Attributes:
        order: slope of the line.
        standard_error: of the slope, from the residuals; it holds curvature, not rounding.
        low: lower end of the confidence interval of level `LEVEL` (Student's t, n - 2 degrees of freedom).
        high: upper end.
        points: number of step sizes.
    """

    order: float
    standard_error: float
    low: float
    high: float
    points: int

    def __str__(self) -> str:
        """`1.02 ± 0.03`: the order and its standard error, without a minus zero."""
        return f"{round(self.order, 2) + 0.0:.2f} ± {self.standard_error:.2f}"


def fit_order(step_sizes: Sequence[float], errors: Sequence[float]) -> OrderFit | None:
    """Ordinary least squares of log errors on log step sizes; None with fewer than `FEWEST` points.

    Args:
        step_sizes: (n,), positive, not all equal.
        errors: (n,), positive.

    Raises:
        ValueError: lengths that differ, or numbers that are not positive and finite.
    """
    sizes, found = np.asarray(step_sizes, dtype=float), np.asarray(errors, dtype=float)
    if sizes.shape != found.shape or sizes.ndim != 1:
        raise ValueError(f"errors: {found.shape} beside {sizes.shape} step sizes; give one error per step size")
    if not np.all((sizes > 0) & np.isfinite(sizes)) or not np.all((found > 0) & np.isfinite(found)):
        raise ValueError("step_sizes and errors must be positive and finite: an order is a slope of logarithms")
    if sizes.size < FEWEST:
        return None
    line = sm.OLS(np.log(found), sm.add_constant(np.log(sizes))).fit()
    low, high = line.conf_int(alpha=1 - LEVEL)[1]
    return OrderFit(float(line.params[1]), float(line.bse[1]), float(low), float(high), sizes.size)
