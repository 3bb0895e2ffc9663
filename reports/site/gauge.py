"""A small drawing of one result: how large the effect is, what is allowed, what would have been seen."""

import math

from markupsafe import Markup

from checks.core.result import Result

LOW, HIGH = -16.0, 1.0
"""Powers of ten at the ends of the axis."""
WIDTH, HEIGHT = 160, 16


def place(value: float) -> float:
    """Of a number on the logarithmic axis, in pixels; what is below the axis is at its left end."""
    power = LOW if value <= 0 else min(HIGH, max(LOW, math.log10(value)))
    return round(4 + (WIDTH - 8) * (power - LOW) / (HIGH - LOW), 1)


def gauge(result: Result) -> Markup:
    """An SVG: a bar up to the allowance, a tick at what is detectable, a dot for the effect; empty without effect."""
    if result.effect is None:
        return Markup()
    allowance, effect = place(abs(result.allowance or 0.0)), place(abs(result.effect))
    title = f"effect {result.effect:.3g}, allowance {result.allowance or 0.0:.3g}"
    tick = ""
    if result.detectable is not None:
        at = place(abs(result.detectable))
        tick = f'<path d="M{at} 2V14" class="tick"/>'
        title += f", detectable {result.detectable:.3g}"
    return Markup(
        f'<svg class="gauge" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">'
        f'<title>{title}</title><path d="M4 8H{WIDTH - 4}" class="axis"/><path d="M4 8H{allowance}" class="allowed"/>'
        f'{tick}<circle cx="{effect}" cy="8" r="4" class="{result.verdict}"/>'
        "</svg>"
    )
