"""Choices of which one side has choices of its own: `select(coin, select(a, y, x), select(b, z, x))`.

A program computes both sides before it chooses. To read it that way asks whether `a` accepts where the coin has chosen
`b`, and what cannot be decided there, such as one draw for two comparisons, ends a reading for no reason. Where a
choice by one predicate has sides that nothing else needs, and choices are in them, the predicate is read first, and the
chosen side alone.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from jax.extend import core


class Choice(NamedTuple):
    """An equation that chooses one of several sides by one predicate.

    Attributes:
        predicate: the variable that chooses.
        sides: the variables that are chosen from, all of one shape.
    """

    predicate: Any
    sides: tuple[Any, ...]


@functools.lru_cache(maxsize=256)
def choices_first(jaxpr: Any) -> Mapping[int, Choice]:
    """The equations of a program, by their numbers, that choose by one predicate, and whose sides wait for it."""
    made, found = producers(jaxpr), {i: choice for i, e in enumerate(jaxpr.eqns) if (choice := _choice_of(e))}
    chosen: dict[Any, dict[int, Choice]] = {}
    for i, choice in found.items():
        if choice.predicate in made:  # no flag of the state, and no constant
            chosen.setdefault(choice.predicate, {})[i] = choice
    every = needed(jaxpr, jaxpr.outvars, made, {}) if len(chosen) > 1 else set[int]()
    waiting: dict[int, Choice] = {}
    for choices in chosen.values():
        sides = every - needed(jaxpr, jaxpr.outvars, made, choices)
        if any(i in found for i in sides):
            waiting |= choices
    return waiting


def producers(jaxpr: Any) -> Mapping[Any, int]:
    """Variable -> the number of the equation that makes it."""
    return {v: i for i, equation in enumerate(jaxpr.eqns) for v in equation.outvars}


def needed(jaxpr: Any, variables: Iterable[Any], made: Mapping[Any, int], first: Mapping[int, Choice]) -> set[int]:
    """Numbers of the equations that some variables are made by; of a choice in `first` its predicate counts alone."""
    found: set[int] = set()
    left = list(variables)
    while left:
        variable = left.pop()
        number = None if isinstance(variable, core.Literal) else made.get(variable)
        if number is None or number in found:
            continue
        found.add(number)
        left += [first[number].predicate] if number in first else jaxpr.eqns[number].invars
    return found


def _choice_of(equation: Any) -> Choice | None:
    """The choice that an equation is, also as `jax.numpy.where` calls it; None for any other."""
    inner, outer = equation, {v: v for v in equation.invars if not isinstance(v, core.Literal)}
    if equation.primitive.name in ("jit", "pjit"):
        program = equation.params["jaxpr"].jaxpr
        if len(program.eqns) != 1 or program.outvars != program.eqns[0].outvars:
            return None  # what it returns beside the choice is that of an operand
        (inner,) = program.eqns
        outer = dict(zip(program.invars, equation.invars, strict=True))
    if inner.primitive.name != "select_n" or any(v not in outer for v in inner.invars if _is_variable(v)):
        return None
    which, *sides = [outer[v] if _is_variable(v) else v for v in inner.invars]
    alike = len({(v.aval.shape, v.aval.dtype) for v in sides}) == 1
    if not alike or not _is_variable(which) or which.aval.size != 1 or len(equation.invars) != 1 + len(sides):
        return None
    return Choice(which, tuple(sides))


def _is_variable(value: Any) -> bool:
    return not isinstance(value, core.Literal)
