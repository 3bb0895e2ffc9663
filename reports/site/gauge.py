"""Inline drawing of one result: its effect, the allowance, and the smallest detectable effect.

A template and not a chart of matplotlib: the site has thousands of them, four shapes each.
"""

import math

from sgmcmc_verification.checks.core.result import Result
from sgmcmc_verification.reports.templates import render

LOW, HIGH = -16.0, 1.0
"""Powers of ten at the ends of the axis."""
WIDTH, HEIGHT = 160, 16


def place(value: float) -> float:
    """Pixel of a number on the logarithmic axis; a number below the axis is at its left end."""
    power = LOW if value <= 0 else min(HIGH, max(LOW, math.log10(value)))
    return round(4 + (WIDTH - 8) * (power - LOW) / (HIGH - LOW), 1)


def gauge(result: Result) -> str:
    """SVG: a bar up to the allowance, a tick at the detectable effect, a dot at the effect; empty without effect."""
    if result.effect is None:
        return ""
    return render("gauge.html.j2", result=result, place=place, width=WIDTH, height=HEIGHT)
