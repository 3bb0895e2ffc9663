"""The uninterpreted potential near a point, by Taylor's formula.

    d^b U(x_0 + delta) = sum_a d^(a + b) U(x_0) delta^a / a!

x_0 is the part of the point without s, delta the rest. At finite h there is no rest, and the derivatives at each
point are symbols of their own.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.potential import Jet
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader
from sgmcmc_verification.checks.proof.reader.values import Equation, objects
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import EXACT, Series
from sgmcmc_verification.checks.proof.zero import is_zero, surely_differ

Index = tuple[int, ...]


@functools.lru_cache(None)
def multi_indices(dimension: int, order: int) -> tuple[Index, ...]:
    """All multi-indices of an order; there are C(d + k - 1, k) of them and not d^k."""
    choices = itertools.combinations_with_replacement(range(dimension), order)
    return tuple(tuple(choice.count(i) for i in range(dimension)) for choice in choices)


def _uninterpreted(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    point, *numbers = (reader.symbols(value) for value in inputs)
    name = equation.params["name"] + "".join(_label(entry) for number in numbers for entry in number.ravel())
    return [derivatives_at(reader, list(point), name, equation.params["order"])]


def _label(number: Series) -> str:
    """The number of a function of a family."""
    value = number.constant_term.rational if number.is_constant else None
    if value is None or value.denominator != 1:
        raise Unreadable("a datum that is none of the data")
    return str(value)


def derivatives_at(reader: Reader, x: Sequence[Series], name: str, order: int) -> Any:
    """The tensor of the derivatives of an order of the uninterpreted function at a point.

    Raises:
        Unreadable: if the point runs away as h -> 0.
    """
    if any(a.valuation < 0 for a in x):
        raise Unreadable("the potential at a point that runs away as h -> 0")
    dimension = len(x)
    point = _known_point(reader, tuple(a.constant_term for a in x))
    reader.visited.append(point)
    delta = [a.without_constant() for a in x]
    monomials = _monomials(reader, delta)
    precision = EXACT if all(a.is_zero for a in delta) else min(reader.space.order + 1, *(a.precision for a in delta))
    entries = {
        index: _expanded(reader, Jet(name, index, point), monomials, precision)
        for index in multi_indices(dimension, order)
    }
    places = itertools.product(range(dimension), repeat=order)
    return objects([entries[tuple(p.count(i) for i in range(dimension))] for p in places], (dimension,) * order)


def _expanded(reader: Reader, jet: Jet, monomials: Mapping[Index, Series], precision: int) -> Series:
    total = reader.space.zero
    for index, monomial in monomials.items():
        orders = tuple(i + j for i, j in zip(jet.orders, index, strict=True))
        derivative = reader.ring.generator(Jet(jet.name, orders, jet.point))
        factor = Fraction(1, math.prod(map(math.factorial, index)))
        total = total + monomial * reader.space.lift(derivative.scaled(factor))
    return Series(total.space, total.coefficients, min(total.precision, precision))


def _monomials(reader: Reader, delta: Sequence[Series]) -> dict[Index, Series]:
    """delta^a for all a for which it is not zero to the order that is kept."""
    dimension = len(delta)
    monomials: dict[Index, Series] = {(0,) * dimension: reader.space.one}
    if not any(a.coefficients for a in delta):
        return monomials
    for order in range(1, reader.space.order + 1):
        for index in multi_indices(dimension, order):
            first = next(i for i, e in enumerate(index) if e)
            before = monomials.get((*index[:first], index[first] - 1, *index[first + 1 :]))
            product = None if before is None else before * delta[first]
            if product:
                monomials[index] = product
    return monomials


def _known_point(reader: Reader, point: tuple[Polynomial, ...]) -> tuple[Polynomial, ...]:
    """The same point as it was first met: it may come in another form, equal to 50 digits."""
    if point in reader.points:
        return point
    if reader.finite:
        for other in reader.points:
            if len(other) != len(point) or any(surely_differ(a, b) for a, b in zip(point, other, strict=True)):
                continue
            if all(is_zero(a - b) for a, b in zip(point, other, strict=True)):
                return other
    reader.points.append(point)
    return point


TAYLOR: dict[str, Handler] = {"uninterpreted": _uninterpreted}
