"""Line charts as SVG text in a page: no script, no image file, legible on a phone, in print and without colours.

A line is told from the others by three things: its colour (Okabe and Ito), its marker and its dashes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 420, 290
LEFT, RIGHT, TOP, BOTTOM = 62, 10, 10, 40
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7a7f87")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
MARKERS = ("circle", "square", "triangle", "diamond", "cross")
MOST = len(COLOURS)
"""Lines that one chart can tell apart by colour alone."""


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

    def at(self, value: float) -> float:
        """Where a value is on a linear scale."""
        return math.log10(value) if self.log else value

    def shows(self, value: float) -> bool:
        """False for what has no place on it."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """(place, text) of at most seven round values."""
        if self.log:
            first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
            if last - first >= 2:
                every = math.ceil((last - first + 1) / 7)
                return [(p, f"1e{p}" if abs(p) > 3 else f"{10.0**p:g}") for p in range(first, last + 1, every)]
            digits = (1, 2, 5) if last > first else (1, 1.5, 2, 3, 4, 5, 6, 8)
            values = [m * 10.0**p for p in range(first - 1, last + 2) for m in digits]
            return [(math.log10(v), f"{v:g}") for v in values if low <= math.log10(v) <= high]
        size = (high - low) / 5
        unit = 10.0 ** math.floor(math.log10(size))
        step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= size)
        return [(i * step, f"{i * step:g}") for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def chart(lines: Sequence[Line], x: Axis, y: Axis, title: str) -> Markup:
    """A figure of up to `MOST` lines with its legend; empty if no point can be shown.

    Raises:
        ValueError: for more lines than can be told apart.
    """
    if len(lines) > MOST:
        raise ValueError(f"lines: at most {MOST} in a chart, got {len(lines)}")
    shown = [
        Line(line.name, tuple((x.at(a), y.at(b)) for a, b in line.points if x.shows(a) and y.shows(b)))
        for line in lines
    ]
    every = [point for line in shown for point in line.points]
    if not every:
        return Markup()
    spans = []
    for values in zip(*every, strict=True):
        low, high = min(values), max(values)
        margin = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
        spans.append((low - margin, high + margin))
    (x0, x1), (y0, y1) = spans
    place = lambda a, b: (
        round(LEFT + (WIDTH - LEFT - RIGHT) * (a - x0) / (x1 - x0), 1),
        round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (b - y0) / (y1 - y0), 1),
    )
    parts = [f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for at, text in x.ticks(x0, x1):
        px = place(at, y0)[0]
        parts.append(f'<path class="grid" d="M{px} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{px}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{text}</text>')
    for at, text in y.ticks(y0, y1):
        py = place(x0, at)[1]
        parts.append(f'<path class="grid" d="M{LEFT} {py}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{py + 4}" text-anchor="end">{text}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x.label)}</text>')
    parts.append(
        f'<text x="11" y="{middle}" text-anchor="middle" transform="rotate(-90 11 {middle})">{escape(y.label)}</text>'
    )
    keys = []
    for number, line in enumerate(shown):
        places = [place(a, b) for a, b in line.points]
        parts.append(_drawn(number, places))
        key = _drawn(number, [(2, 6), (17, 6), (32, 6)], 1)
        drawn = f'<svg viewBox="0 0 34 12" width="34" height="12" aria-hidden="true">{key}</svg>'
        keys.append(f"<li>{drawn} {escape(line.name)}</li>")
    parts.append("</svg>")
    legend = f'<ul class="keys">{"".join(keys)}</ul>'
    caption = f"<figcaption>{escape(title)}</figcaption>"
    return Markup(f'<figure class="drawing">{caption}{"".join(parts)}{legend}</figure>')


def _drawn(number: int, places: Sequence[tuple[float, float]], only: int | None = None) -> str:
    """A line with its markers, on at most a dozen of its points, or on one."""
    colour = COLOURS[number % len(COLOURS)]
    dashes = DASHES[number % len(DASHES)]
    path = "M" + "L".join(f"{a} {b}" for a, b in places)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    every = max(1, math.ceil(len(places) / 12))
    marked = places[::every] if only is None else [places[only]]
    marks = "".join(_mark(MARKERS[number % len(MARKERS)], *p) for p in marked)
    return (
        f'<g stroke="{colour}" fill="{colour}"><path class="line" fill="none" d="{path}"{dashed}/>'
        f'<g class="marks">{marks}</g></g>'
    )


def _mark(kind: str, x: float, y: float) -> str:
    r = 3.2
    shapes = {
        "square": f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        "triangle": f"M{x:.1f} {y - 4:.1f}l4 7h-8z",
        "diamond": f"M{x:.1f} {y - 4.4:.1f}l4.4 4.4l-4.4 4.4l-4.4 -4.4z",
        "cross": f"M{x - 3.5:.1f} {y - 3.5:.1f}l7 7M{x + 3.5:.1f} {y - 3.5:.1f}l-7 7",
    }
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
    return f'<path d="{shapes[kind]}"/>'
