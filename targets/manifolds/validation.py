"""Validation that the manifolds share."""

import operator


def require_whole(argument: str, value: int, least: int) -> None:
    """Raise ValueError, naming the argument, unless `value` is an integer of at least `least`."""
    try:
        valid = operator.index(value) >= least
    except TypeError:
        valid = False
    if not valid:
        raise ValueError(f"{argument}: must be an integer of at least {least}, got {value!r}")
