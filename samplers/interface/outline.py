"""Outlines of programs, whatever the shapes of their arrays: two with one outline are one code at two sizes."""

from collections.abc import Hashable, Iterator, Mapping

import numpy as np
from jax.extend import core

SIZES = frozenset(
    {
        *("shape", "sizes", "new_sizes", "dimensions", "broadcast_dimensions", "start_indices", "limit_indices"),
        *("strides", "slice_sizes", "axis_size", "index_dtype", "sharding", "length", "padding_config"),
    }
)
"""Parameters of operations that follow from shapes."""
ESTIMATE = "estimate_of_a_target"
"""Name of the function that gives estimates, into which an outline does not look."""
TOLD_APART = frozenset({-1.0, 0.0, 0.5, 1.0, 2.0})
"""Constants that are told apart from others, which may follow from a size: without a factor 0 it is another program."""


def outline(jaxpr: core.Jaxpr) -> tuple[Hashable, ...]:
    """Operations of a program in their order, and what is read by each: hashable, the same for other shapes."""
    numbers: dict[Hashable, int] = {}
    read = lambda v: _constant(v.val) if isinstance(v, core.Literal) else numbers.setdefault(v, len(numbers))
    for variable in (*jaxpr.constvars, *jaxpr.invars):
        numbers.setdefault(variable, len(numbers))
    lines = []
    for equation in jaxpr.eqns:
        inputs = tuple(map(read, equation.invars))
        outputs = tuple(numbers.setdefault(v, len(numbers)) for v in equation.outvars)
        told = () if equation.params.get("name") == ESTIMATE else _told(equation.params)
        lines.append((equation.primitive.name, inputs, outputs, *told))
    return len(jaxpr.invars), tuple(lines), tuple(map(read, jaxpr.outvars))


def _told(params: Mapping[str, object]) -> Iterator[Hashable]:
    """Those parameters of an operation that are numbers or texts and not sizes, and the outlines of its programs."""
    for name, value in sorted(params.items()):
        for each in value if isinstance(value, tuple) else (value,):
            inner = getattr(each, "jaxpr", each)
            if isinstance(inner, core.Jaxpr):
                yield outline(inner)
            elif name not in SIZES and isinstance(each, bool | int | float | str):
                yield name, each


def _constant(value: object) -> str:
    number = np.asarray(value)
    if number.dtype.kind in "biu" or (number.size == 1 and float(number) in TOLD_APART):
        return str(number)
    return str(number.dtype)
