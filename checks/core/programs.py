"""The programs within a program of JAX, and its operations by name."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jax.extend import core


def subjaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    """The programs among the parameters of an equation."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, core.ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, core.Jaxpr):
                yield item


def operation_names(jaxpr: Any) -> Iterator[str]:
    """The names of the operations of a program in their order, those of the programs in it behind each of theirs."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in subjaxprs(equation.params):
            yield from operation_names(inner)


def operations_and_numbers(jaxpr: Any) -> Iterator[str | float]:
    """The same, each name followed by the numbers that are written into the program as its arguments."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        yield from (np.asarray(v.val).item() for v in equation.invars if _is_number(v))
        for inner in subjaxprs(equation.params):
            yield from operations_and_numbers(inner)


def _is_number(variable: Any) -> bool:
    return isinstance(variable, core.Literal) and np.size(variable.val) == 1
