"""Line charts, drawn by matplotlib as SVG in a page: no script, no image file, legible on a phone, in print and on any
background, because text and axes take the colour of the page.

A line is told from the others by three things: its colour (Okabe and Ito), its marker and its dashes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sgmcmc_verification.reports.templates import render

if TYPE_CHECKING:
    from matplotlib.ticker import Locator

WIDTH, HEIGHT = 420, 265
"""Size without the legend, in points."""
LEFT, RIGHT, TOP, BOTTOM = 64, 10, 8, 40
"""Margins of the axes."""
ROW = 18
"""Height of a row of the legend."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a5fb0", "#7a7f87")
DASHES = ("-", (0, (7, 3)), (0, (2, 3)), (0, (9, 3, 2, 3)))
MARKERS = ("o", "s", "^", "D", "x")
MOST = len(COLOURS)
"""Lines that one chart can tell apart by colour alone."""
INK = "#010203"
"""Stands for the colour of the page's text, which replaces it in the SVG."""
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "font.sans-serif": ["DejaVu Sans"],  # measured with it; the reader's sans-serif may take its place
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"), INK
    ),
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.18,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "lines.scale_dashes": False,
    "legend.frameon": False,
    "legend.handlelength": 3.0,
    "legend.borderaxespad": 0.0,
    "legend.borderpad": 0.0,
}


@dataclass(frozen=True)
class Line:
    """A name and its points; those that the axes cannot show are left out."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Axis:
    """A label, and whether the axis is logarithmic."""

    label: str
    log: bool = False

    def shows(self, value: float) -> bool:
        """False for a value that has no place on the axis."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def locator(self, low: float, high: float) -> Locator:
        """Rule for about seven round values between two."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        decades = math.log10(high / low) if self.log else 0.0
        if decades < 0.3:
            return MaxNLocator(5, steps=(1, 2, 5, 10))
        if decades < 2:
            return LogLocator(subs=(1, 2, 5) if decades >= 1 else (1, 1.5, 2, 3, 4, 5, 6, 8))
        return LogLocator(numticks=7)


def tick(value: float) -> str:
    """Short text of a round value: `0.01`, `1500`, `1e-4`."""
    power = math.floor(math.log10(abs(value)) + 1e-9) if value else 0
    return f"{value:g}" if -3 <= power <= 4 else f"{value / 10.0**power:g}e{power}"


def chart(lines: Sequence[Line], x: Axis, y: Axis, title: str) -> str:
    """Figure of up to `MOST` lines with its legend; empty if no point can be shown.

    Raises:
        ValueError: for more lines than can be told apart.
    """
    if len(lines) > MOST:
        raise ValueError(f"lines: at most {MOST} in a chart, got {len(lines)}")
    shown = [Line(line.name, tuple(p for p in line.points if x.shows(p[0]) and y.shows(p[1]))) for line in lines]
    if not any(line.points for line in shown):
        return ""
    viewbox, body = _drawn(shown, x, y, title)
    name = "chart-" + re.sub(r"\W+", "-", title.lower()).strip("-")
    return render("chart.html.j2", title=title, id=name, viewbox=viewbox, body=body, lines=shown, x=x.label, y=y.label)


def _drawn(lines: Sequence[Line], x: Axis, y: Axis, title: str) -> tuple[str, str]:
    """View box and content of the SVG, the same for the same lines."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    columns = 2 if max(len(line.name) for line in lines) <= 22 else 1
    height = HEIGHT + ROW * math.ceil(len(lines) / columns)
    drawn = HEIGHT - TOP - BOTTOM
    out = io.StringIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": title}):
        figure = Figure(figsize=(WIDTH / 72, height / 72))
        box = (LEFT / WIDTH, (height - TOP - drawn) / height, 1 - (LEFT + RIGHT) / WIDTH, drawn / height)
        axes = figure.add_axes(box, xlabel=x.label, ylabel=y.label)
        for number, line in enumerate(lines):
            axes.plot(
                [a for a, _ in line.points],
                [b for _, b in line.points],
                label=line.name,
                color=COLOURS[number],
                linestyle=DASHES[number % len(DASHES)],
                marker=MARKERS[number % len(MARKERS)],
                markevery=max(1, math.ceil(len(line.points) / 12)),
            )
        axes.set(xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
        for given, axis in ((x, axes.xaxis), (y, axes.yaxis)):
            axis.set_major_locator(given.locator(*axis.get_view_interval()))
            axis.set_major_formatter(lambda value, _: tick(value))
            axis.set_minor_locator(NullLocator())
        figure.legend(loc="lower left", ncols=columns)
        figure.savefig(
            out, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    return _embedded(out.getvalue())


def _embedded(svg: str) -> tuple[str, str]:
    """View box and content of an SVG file, ready for a page: no style sheet, no id that nothing refers to."""
    svg = re.sub(r'<defs>\s*<style.*?</style>\s*</defs>| id="[\w.]+_\d+"', "", svg, flags=re.DOTALL)
    found = re.search(r'viewBox="([^"]+)"[^>]*>(.*)</svg>', svg.replace(INK, "currentColor"), re.DOTALL)
    assert found is not None
    return found[1], found[2].strip()
