"""Validation of numbers that the targets share: one line that names the argument."""

import math
import operator


def require_positive(**numbers: float) -> None:
    """Raise ValueError, naming the argument, unless every number is positive and finite."""
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}: must be positive and finite, got {value!r}")


def require_some(**counts: int) -> None:
    """Raise ValueError, naming the argument, unless every count is at least 1."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name}: must be at least 1, got {value!r}")


def require_whole(argument: str, value: int, least: int) -> None:
    """Raise ValueError, naming the argument, unless `value` is an integer of at least `least`."""
    try:
        valid = operator.index(value) >= least
    except TypeError:
        valid = False
    if not valid:
        raise ValueError(f"{argument}: must be an integer of at least {least}, got {value!r}")
