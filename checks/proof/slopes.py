"""Derivatives of polynomials at a point, by the chain rule on values: nothing is multiplied out.

    d p = sum over terms and factors of (term / g) e dg,   dg by the rule of the function g and the slopes inside of it

For the Jacobian of a long program the derivative as a polynomial is a hundred times longer than the program. Values are
whole multiples of a power of two below the working precision of mpmath: sums of products of whole numbers of Python
take NumPy a tenth of the time of mpmath's.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from sgmcmc_verification.checks.proof.functions import (
    HALF,
    Abbreviation,
    Absolute,
    Applied,
    HalfPower,
    InverseRoot,
    RationalPower,
    Values,
    derivatives,
    power,
)
from sgmcmc_verification.checks.proof.potential import Jet
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring, Value

GUARD = 128
"""Bits below the working precision, for numbers below one and for sums."""
Slopes = np.ndarray[Any, np.dtype[np.object_]]
"""Derivatives (n,) as whole numbers, in units of 2^-bits."""


class Gradients:
    """The derivatives of polynomials by some generators at one point.

    Args:
        ring: of the polynomials.
        value: the values of polynomials at the point, none of them zero but by chance.
        variables: numbers of the generators.
    """

    def __init__(self, ring: Ring, value: Values, variables: Sequence[int]) -> None:
        self.ring, self.value, self.variables = ring, value, list(variables)
        self.bits = mpmath.mp.prec + GUARD
        self._asked = frozenset(variables)
        self._known: dict[int, Slopes | None] = {}

    def __call__(self, p: Polynomial) -> list[Value]:
        """The derivatives of a polynomial."""
        return [self._number(slope) for slope in self._row(p)]

    def determinant(self, image: Sequence[Polynomial]) -> Value:
        """|det| of the Jacobian of as many polynomials as there are generators, by elimination with pivots."""
        rows, bits = np.stack([self._row(p) for p in image]), self.bits
        found = mpmath.mpf(1)
        for k in range(len(rows)):
            best = k + int(np.argmax(np.abs(rows[k:, k])))
            rows[[k, best]] = rows[[best, k]]
            pivot = rows[k, k]
            if not pivot:
                return mpmath.mpf(0)
            found *= abs(self._number(pivot))
            factors = (rows[k + 1 :, k] << bits) // pivot
            rows[k + 1 :, k:] -= np.multiply.outer(factors, rows[k, k:]) >> bits
        return found

    def _number(self, slope: int) -> Value:
        return mpmath.ldexp(mpmath.mpf(slope), -self.bits)

    def _whole(self, value: Value) -> int:
        return int(mpmath.ldexp(mpmath.mpf(value), self.bits))

    def _row(self, p: Polynomial) -> Slopes:
        scales: dict[int, Value] = {}
        for factors, coefficient in p.terms():
            moving = [(g, e) for g, e in factors if self._of(g) is not None]
            if not moving:
                continue
            term = self.value(self.ring.monomial(factors, coefficient))
            for number, exponent in moving:
                scales[number] = scales.get(number, 0) + term * exponent / self.value(self.ring.power(number, 1))
        return self._sum((scale, self._of(number)) for number, scale in scales.items())

    def _sum(self, parts: Iterable[tuple[Value, Slopes | None]]) -> Slopes:
        """The sum of multiples of slopes, some of which are zero."""
        held = [(self._whole(scale), slopes) for scale, slopes in parts if slopes is not None]
        if not held:
            return np.array([0] * len(self.variables), object)
        return np.array([scale for scale, _ in held], object) @ np.stack([slopes for _, slopes in held]) >> self.bits

    def _of(self, number: int) -> Slopes | None:
        """The slopes of a generator; None if all are zero."""
        if number not in self._known:
            moves = bool(self._asked & self.ring.atoms(number))
            found = self._found(number) if moves else None
            self._known[number] = found if found is not None and any(found) else None
        return self._known[number]

    def _found(self, number: int) -> Slopes:
        if number in self._asked:
            return np.array([int(number == v) << self.bits for v in self.variables], object)
        ring = self.ring
        match ring.generators[number]:
            case Abbreviation(meaning):
                return self._row(meaning)
            case InverseRoot(base):
                return self._scaled(ring.power(number, 3).scaled(-HALF), base)
            case HalfPower(base):
                return self._scaled((ring.power(number, 1) * power(base, -1)).scaled(-HALF), base)
            case RationalPower(base, exponent):
                return self._scaled((ring.power(number, 1) * power(base, Fraction(-1))).scaled(exponent), base)
            case Applied(name, argument) if name != "min0":
                return self._scaled(derivatives(name, argument, 1)[1], argument)
            case Absolute(argument):
                return self._scaled(ring.power(number, -1) * argument, argument)
            case Jet() as jet:
                raised = (self.value(ring.generator(jet.raised(j))) for j in range(len(jet.point)))
                return self._sum(zip(raised, map(self._row, jet.point), strict=True))
            case other:
                slopes = [self._whole(self.value(other.derivative(ring, number, v))) for v in self.variables]
                return np.array(slopes, object)

    def _scaled(self, outer: Polynomial, inner: Polynomial) -> Slopes:
        return self._sum([(self.value(outer), self._row(inner))])
