"""Parts that the pages and figures of experiments share."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sgmcmc_verification.reports.experiments.common.grid import Lines
from sgmcmc_verification.reports.templates import render


def mean_and_error(values) -> tuple[float, float]:
    """Mean and its standard error."""
    values = np.asarray(values, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def number(value: float | None, digits: int = 2) -> str:
    """Short; an en dash for None."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.{digits}g}" if abs(value) < 100 else f"{value:.0f}"


def pair(value: Sequence[float]) -> str:
    """value ± standard error."""
    return f"{value[0]:.3f} ± {value[1]:.3f}"


def provenance(lines: Lines) -> str:
    """Commits, packages and time of the lines, a sentence."""
    revisions = sorted({line["commit"][:12] + "+" * line["commit"].endswith("+") for line in lines.values()})
    packages = sorted({f"{k} {v}" for line in lines.values() for k, v in line["versions"].items()})
    return (
        f"Commit {', '.join(revisions)} (+: with uncommitted changes); {', '.join(packages)}; "
        f"{sum(line['seconds'] for line in lines.values()) / 60:.0f} minutes on a shared core."
    )


def experiment_page(name: str, lines: Lines, **values: Any) -> str:
    """The page of an experiment: its template, filled in with its name, the provenance of its lines, and `values`."""
    return render(f"experiments/{name}.md.j2", name=name, provenance=provenance(lines), **values)


def results(lines: Lines, cells: Iterable[Any]) -> dict[Any, dict[str, Any]]:
    """Results by cells, of those cells that have a line."""
    return {cell: lines[cell.key]["result"] for cell in cells if cell.key in lines}


def new_figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure without a window, and its axes (rows, columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)
