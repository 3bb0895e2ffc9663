"""Charts of orders: local error of a step and bias of the stationary law against the step size, from stored results."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.checks.registry import STATEMENTS
from sgmcmc_verification.reports.site.chart import MOST, Axis, Line, chart
from sgmcmc_verification.reports.statistics.order_fits import OrderFit, fit_order

CHARTED = {statement.name: statement.charted for statement in STATEMENTS if statement.charted}
"""Detail of the results of a statement that holds a number per step size."""
STEP = Axis("step size h", log=True)
ERROR = Axis("local error, relative", log=True)
BIAS = Axis("bias of the stationary distribution", log=True)
FLOOR = 1e-13
"""Smaller numbers are round-off."""
FINEST = 4
"""Step sizes of a fit, the smallest whose error is well above round-off: coarser ones bend with higher powers of h."""
CLEAR = 1e-9
"""Errors of a fit: round-off is below one part in ten thousand of them."""


class FittedOrder(NamedTuple):
    """Order of a sampler on a target, by least squares.

    Attributes:
        sampler: name of the row.
        statement: whose numbers were fitted.
        target: name of the target.
        what: "local weak error" or "bias".
        fit: of the order p; a local weak error of h^(p + 1) is fitted as such, less one.
    """

    sampler: str
    statement: str
    target: str
    what: str
    fit: OrderFit


def fitted(result: Result) -> FittedOrder | None:
    """Order by least squares over the finest step sizes of a result; None if too few of them are clear of round-off."""
    detail = CHARTED.get(result.statement, "")
    values, sizes = result.detail.get(detail), result.detail.get("step_sizes")
    if not values or not sizes or len(values) != len(sizes) or result.detail.get("measured_order") is None:
        return None  # without a measured order the statement itself found its numbers too near to their error
    clear = [(h, v) for h, v in zip(sizes, values, strict=True) if v is not None and v > CLEAR][-FINEST:]
    fit = fit_order(*zip(*clear, strict=True)) if clear else None
    if fit is None:
        return None
    if detail == "errors":
        fit = fit._replace(order=fit.order - 1, low=fit.low - 1, high=fit.high - 1)
    what = "local weak error" if detail == "errors" else "bias"
    return FittedOrder(result.sampler, result.statement, result.target or "any", what, fit)


def fits_of_library(rows: Sequence[tuple[str, Sequence[Result]]]) -> list[FittedOrder]:
    """Fitted orders of all samplers of a library at their default options."""
    found = (fitted(result) for _, results in rows for result in results if not result.options)
    return [fit for fit in found if fit]


def line_of(result: Result, name: str) -> Line | None:
    """Line of a result; None if it has no such numbers, or none above round-off."""
    values = result.detail.get(CHARTED.get(result.statement, ""))
    sizes = result.detail.get("step_sizes")
    if not values or not sizes or len(values) != len(sizes):
        return None
    points = tuple((h, v) for h, v in zip(sizes, values, strict=True) if v is not None and v > FLOOR)
    order = result.detail.get("measured_order")
    # + 0.0: no minus zero
    measured = f", order {round(order, 1) + 0.0:.1f}" if isinstance(order, int | float) and abs(order) < 50 else ""
    return Line(name + measured, points) if len(points) > 1 else None


def of_sampler(results: Iterable[Result]) -> list[str]:
    """Charts of local errors and biases of one sampler at its default options, a line per target."""
    default = [r for r in results if not r.options]
    figures = []
    for detail, axis, title in (
        ("errors", ERROR, "Local weak error of a step"),
        ("bias", BIAS, "Bias of the stationary distribution"),
    ):
        lines = [line_of(r, r.target or "any") for r in default if CHARTED.get(r.statement) == detail]
        figures += _figures([line for line in lines if line], axis, title)
    return figures


def of_library(rows: Sequence[tuple[str, Sequence[Result]]], library: str) -> list[str]:
    """Charts of all samplers of a library, a line per sampler: on the first target that has numbers."""
    figures = []
    for detail, axis, what in (
        ("errors", ERROR, "local weak error"),
        ("bias", BIAS, "bias of the stationary distribution"),
    ):
        lines = []
        for name, results in rows:
            own = (
                line_of(r, name.split("/")[-1]) for r in results if CHARTED.get(r.statement) == detail and not r.options
            )
            first = next((line for line in own if line), None)
            lines += [first] if first else []
        figures += _figures(lines, axis, f"{library}: {what}")
    return figures


def _figures(lines: Sequence[Line], axis: Axis, title: str) -> list[str]:
    """Charts of at most `MOST` lines each."""
    parts = [lines[i : i + MOST] for i in range(0, len(lines), MOST)]
    numbered = [f" ({i} of {len(parts)})" if len(parts) > 1 else "" for i in range(1, len(parts) + 1)]
    return [chart(part, STEP, axis, title + n) for part, n in zip(parts, numbered, strict=True)]
