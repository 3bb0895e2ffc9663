"""Values that a reader computes with, and arrays of them.

Real numbers are `Series`; integers and booleans of the program stay what they are, in ordinary arrays, as they decide
where an element goes. In object arrays there may also be a `Predicate`, a key (`History`), or `UNKNOWN`, an integer
of the state.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import Constant, square_root
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Series

Equation = Any
"""An equation of a jaxpr."""
Array = np.ndarray[Any, Any]


class Unknown:
    """An integer or flag of the state, of which no value is known.

    Args:
        least: a bound from below, if one is known.
    """

    def __init__(self, least: int | None = None) -> None:
        self.least = least

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


@dataclass(frozen=True, eq=False)
class Coin:
    """A comparison of a uniform draw with a number that depends on the state or on other draws, and is smooth.

    Attributes:
        number: of the draw.
        chance: the probability that the comparison holds, in (0, 1) as h -> 0.
    """

    number: int
    chance: Series


@dataclass(frozen=True)
class Predicate:
    """The truth of difference < 0, or its negation; equality has no probability at a generic point.

    Attributes:
        difference: its sign is asked for; None if an integer of the state decides.
        negated: whether the predicate is true where difference > 0.
        probability: of difference < 0, if that is a comparison of one uniform draw with a number.
        of_draws: whether the difference is a function of draws alone.
        coin: if difference < 0 is one.
    """

    difference: Polynomial | None
    negated: bool = False
    probability: Fraction | None = None
    of_draws: bool = False
    coin: Coin | None = None

    def inverted(self) -> "Predicate":
        """Its negation."""
        return replace(self, negated=not self.negated)


@dataclass(frozen=True)
class RawKey:
    """One of the words of the bits of a key, which may only be wrapped again."""

    key: Any
    word: int


def objects(items: Sequence[Any], shape: Sequence[int]) -> Array:
    """An object array of a shape; NumPy would look inside of some items."""
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        array[i] = item
    return array.reshape(tuple(shape))


def scalar(item: Any) -> Array:
    """An object array without axes."""
    return objects([item], ())


def is_symbolic(value: Any) -> bool:
    """True for arrays of objects, False for numbers of the program."""
    return isinstance(value, np.ndarray) and value.dtype == object


def is_discrete(dtype: Any) -> bool:
    """True for the types of integers and booleans."""
    return not is_key_type(dtype) and np.dtype(dtype).kind in "iub"


def is_key_type(dtype: Any) -> bool:
    """True for the types of random keys."""
    return jnp.issubdtype(dtype, jax.dtypes.prng_key)


def has_unknown(value: Any) -> bool:
    """True if an integer of the state is among the entries, or a predicate on one."""
    return is_symbolic(value) and any(
        isinstance(x, Unknown) or (isinstance(x, Predicate) and x.difference is None) for x in value.ravel()
    )


def booleans(value: Array) -> Array:
    """A plain array of booleans if all entries are decided."""
    decided = value.size and all(isinstance(x, bool | np.bool_) for x in value.ravel())
    return value.astype(bool) if decided else value


def each(function: Callable[..., Any], *arrays: Array) -> Array:
    """A function of entries, with broadcasting."""
    broadcast = np.broadcast_arrays(*arrays, subok=False)
    items = [function(*entries) for entries in zip(*(a.ravel() for a in broadcast), strict=True)]
    return objects(items, broadcast[0].shape)


def folded(value: Array, axes: Sequence[int], function: Callable[[Any, Any], Any], start: Any) -> Array:
    """A function of two entries folded over some axes; `start` where there is nothing to fold."""
    kept = [i for i in range(value.ndim) if i not in axes]
    shape = tuple(value.shape[i] for i in kept)
    rows = value.transpose([*kept, *axes]).reshape(math.prod(shape), -1)
    return objects([functools.reduce(function, row[1:], row[0]) if len(row) else start for row in rows], shape)


def meant(ring: Ring, value: float) -> Polynomial:
    """The number that the author of a float meant: a small fraction, a root of one, a multiple of pi, or its decimal.

    0.1 becomes 1/10, 1.4142135623730951 the square root of 2; a proof is about these numbers, not about their rounding.

    Raises:
        Unreadable: for NaN.
    """
    value = float(value)
    if value != value:
        raise Unreadable("NaN")
    sign = -1 if value < 0 else 1
    if math.isinf(value):
        return ring.generator(Constant("inf")).scaled(sign)
    simple = Fraction(value).limit_denominator(10_000)
    if float(simple) == value:
        return ring.constant(simple)
    square = Fraction(value * value).limit_denominator(10_000)
    if square and abs(math.sqrt(square) / abs(value) - 1) < 2 * np.finfo(float).eps:
        return square_root(ring, square).scaled(sign)
    turns = Fraction(value / math.pi).limit_denominator(100)
    if turns and abs(float(turns) * math.pi / value - 1) < 2 * np.finfo(float).eps:
        return ring.generator(Constant("pi")).scaled(turns)
    return ring.constant(Fraction(repr(value)))


def is_infinite(p: Polynomial) -> bool:
    """True if infinity is in a polynomial."""
    return any(p.ring.generators[number] == Constant("inf") for number in p.numbers())


def draws_only(a: Series) -> bool:
    """True if a series is a number or a function of draws, without s and without the state."""
    return a.is_constant and not any(p.has("state") for p in a.polynomials())
