"""Whole numbers that stand in a program, with which a schedule can compare a count of steps; words in its code."""

import inspect
import itertools
import re
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs.operations import subjaxprs

LEAST, MOST = 2, 10**12
"""Numbers that are looked for; smaller ones are met by any run."""
BOUNDS = {2**31 - 1, 2**31, 2**32 - 1, 2**32}
"""Bounds of types, at which counts stop that must not overflow: no run gets there."""
FEW = 6
"""Numbers of which products are formed too, as in `count // 1000 > 50`; words that are looked at."""
WORD = re.compile(r"[A-Za-z_][\w./-]{1,30}")
"""A text that may be a name of parameters."""

CONSTANTS = int | float | str


def of_program(function: Callable[..., Any], *arguments: Any) -> tuple[int, ...]:
    """Whole numbers of the program of a function, their products, and those just before and after."""
    closed = jax.make_jaxpr(function)(*arguments)
    return _near([*_constants(closed.consts), *_literals(closed.jaxpr)])


def of_step(step: Callable[..., Any]) -> tuple[int, ...]:
    """The same of a function of Python, of functions of its module that it names, and of variables it encloses."""
    return _near(value for value in _of_code(_function(step), set()) if isinstance(value, int | float))


def words_of_step(step: Callable[..., Any]) -> tuple[str, ...]:
    """The first few words that stand in the same places: names of parameters may be among them."""
    found = [value for value in _of_code(_function(step), set()) if isinstance(value, str) and WORD.fullmatch(value)]
    return tuple(dict.fromkeys(found))[:FEW]


def _function(step: Callable[..., Any]) -> Any:
    return inspect.unwrap(step.__func__ if inspect.ismethod(step) else step)


def _near(numbers: Iterable[Any]) -> tuple[int, ...]:
    whole = sorted({int(n) for n in numbers if LEAST <= n <= MOST and n == int(n)} - BOUNDS)
    several = [a * b for a, b in itertools.combinations_with_replacement(whole[-FEW:], 2) if a * b <= MOST]
    return tuple(sorted({n + k for n in (*whole, *several) for k in (-1, 0, 1)}))


def _constants(values: Iterable[Any]) -> list[Any]:
    # a dtype of JAX's own, as keys have, is no number
    kind = lambda v: getattr(getattr(v, "dtype", np.dtype(int)), "kind", None)
    kept = [np.asarray(v) for v in values if np.shape(v) == () and kind(v) in ("i", "u", "f")]
    return [v.item() for v in kept if np.isfinite(v)]


def _literals(jaxpr: Any) -> Iterator[Any]:
    """Numbers of a program and of those within it, without what makes random bits."""
    for equation in jaxpr.eqns:
        if equation.primitive.name.startswith(("random_", "threefry")):
            continue
        yield from _constants(v.val for v in equation.invars if isinstance(v, core.Literal))
        for value in equation.params.values():
            for item in value if isinstance(value, tuple | list) else (value,):
                if isinstance(item, core.ClosedJaxpr):
                    yield from _constants(item.consts)
        for sub in subjaxprs(equation.params):
            yield from _literals(sub)


def _of_code(function: Any, met: set[int]) -> list[Any]:
    """Constants of the code of a function, of what it encloses, and of functions of its module that it names."""
    if not isinstance(function, types.FunctionType) or id(function.__code__) in met:
        return []
    met.add(id(function.__code__))
    found = list(_of_constants(function.__code__))
    cells = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    for value in (*cells, *named, *(function.__defaults__ or ())):
        if isinstance(value, CONSTANTS) and not isinstance(value, bool):
            found.append(value)
        elif isinstance(value, tuple | list | set | frozenset):
            found += [each for each in value if isinstance(each, str)]
        elif getattr(value, "__module__", None) == function.__module__:
            found += _of_code(value, met)
    return found


def _of_constants(code: types.CodeType) -> Iterator[Any]:
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _of_constants(value)
        elif isinstance(value, tuple | frozenset):
            yield from (each for each in value if isinstance(each, str))
        elif isinstance(value, CONSTANTS) and not isinstance(value, bool):
            yield value


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
