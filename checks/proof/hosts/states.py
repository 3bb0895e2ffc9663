"""States of host samplers as a form and numbers: arrays, and whatever Python objects hold them."""

import enum
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts.symbols import Symbol, recorded, symbolic

Form = tuple[Any, ...]
"""What a state is but for its numbers: nested tuples, which can be compared."""
_FIXED = (type(None), str, bytes, enum.Enum, types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)


@dataclass
class Opened:
    """A state that was taken apart.

    Attributes:
        form: of it.
        leaves: its numbers and arrays, in order.
    """

    form: Form
    leaves: list[Any]


def opened(state: Any) -> Opened:
    """A state taken apart.

    Raises:
        Unreadable: for what cannot be taken apart, and for arrays that share memory: to write to one is to change both.
    """
    leaves: list[Any] = []
    form = _form(state, leaves, [])
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray) and leaf.size]
    for i, one in enumerate(arrays):
        if any(np.shares_memory(one, other) for other in arrays[:i]):
            raise Unreadable("two arrays of the state that share memory")
    return Opened(form, leaves)


def _form(value: Any, leaves: list[Any], around: list[Any]) -> Form:
    if any(value is outer for outer in around):
        raise Unreadable("a state that holds itself")
    if isinstance(value, bool | int | float | np.generic | np.ndarray | jax.Array | Symbol):
        leaves.append(value)
        if isinstance(value, jax.Array):
            return ("jax",)
        return ("array",) if np.shape(value) else ("number",)
    if isinstance(value, _FIXED):
        return ("fixed", value)
    inner = [*around, value]
    kind = type(value)
    if isinstance(value, Mapping):
        names = tuple(sorted(value)) if all(isinstance(name, str) for name in value) else tuple(value)
        return ("mapping", kind, names, *(_form(value[name], leaves, inner) for name in names))
    if isinstance(value, tuple | list):
        return ("sequence", kind, *(_form(item, leaves, inner) for item in value))
    if isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        raise Unreadable("a random generator in the state")
    if hasattr(value, "__dict__") and not hasattr(kind, "__slots__"):
        return ("object", kind, tuple(vars(value)), *(_form(item, leaves, inner) for item in vars(value).values()))
    raise Unreadable(f"a {kind.__name__} in the state")


def closed(form: Form, leaves: Iterator[Any]) -> Any:
    """A state of a form, with its own objects, from values of JAX in order."""
    match form:
        case ("jax",):
            return next(leaves)
        case ("array",):
            return symbolic(next(leaves))
        case ("number",):
            return Symbol(next(leaves))
        case ("fixed", value):
            return value
        case ("mapping", kind, names, *parts):
            return kind(zip(names, (closed(part, leaves) for part in parts), strict=True))
        case ("sequence", kind, *parts):
            items = [closed(part, leaves) for part in parts]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)
        case ("object", kind, names, *parts):
            made = kind.__new__(kind)
            vars(made).update(zip(names, (closed(part, leaves) for part in parts), strict=True))
            return made
        case _:
            raise AssertionError(form)


def values(leaves: list[Any]) -> list[Any]:
    """Arrays of JAX, or of the program, of the numbers of a state."""
    found = [recorded(leaf) for leaf in leaves]
    return [leaf if isinstance(leaf, jax.Array) else np.asarray(leaf) for leaf in found]
