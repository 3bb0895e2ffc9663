"""Validation of arguments: one clear error that names the argument, before any work starts."""

from typing import Any


def require(condition: bool, message: str, value: Any) -> None:
    """Raise ValueError(`message`, got `value`) unless `condition`. The message starts with the argument's name."""
    if not condition:
        raise ValueError(f"{message}, got {value!r}")


def require_positive(options: object, *names: str) -> None:
    """Raise ValueError unless the named attributes of `options`, numbers, are positive."""
    for name in names:
        value = getattr(options, name)
        require(value > 0, f"{name}: must be positive", value)
