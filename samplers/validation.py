"""Validation of arguments: one clear error that names the argument, before any work starts."""

from typing import Any


def require(condition: bool, message: str, value: Any) -> None:
    """Raise ValueError(`message`, got `value`) unless `condition`. The message starts with the argument's name."""
    if not condition:
        raise ValueError(f"{message}, got {value!r}")
