"""Derivatives of polynomials at a point, by the chain rule on values: nothing is multiplied out.

    d p = sum over terms and factors of (term / g) e dg,   dg by the rule of the function g and the slopes inside of it

For the Jacobian of a long program the derivative as a polynomial is a hundred times longer than the program.
"""

from collections.abc import Sequence
from fractions import Fraction

import mpmath

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

Slopes = list[Value]


class Gradients:
    """The derivatives of polynomials by some generators at one point.

    Args:
        ring: of the polynomials.
        value: the values of polynomials at the point, none of them zero but by chance.
        variables: numbers of the generators.
    """

    def __init__(self, ring: Ring, value: Values, variables: Sequence[int]) -> None:
        self.ring, self.value, self.variables = ring, value, list(variables)
        self._asked = frozenset(variables)
        self._zero: Slopes = [mpmath.mpf(0)] * len(self.variables)
        self._known: dict[int, Slopes] = {}

    def __call__(self, p: Polynomial) -> Slopes:
        """The derivatives of a polynomial."""
        total = self._zero
        for factors, coefficient in p.terms():
            moving = [(g, e, slopes) for g, e in factors if any(slopes := self._of(g))]
            if not moving:
                continue
            term = self.value(self.ring.monomial(factors, coefficient))
            for number, exponent, slopes in moving:
                scale = term * exponent / self.value(self.ring.power(number, 1))
                total = [a + scale * b for a, b in zip(total, slopes, strict=True)]
        return total

    def _of(self, number: int) -> Slopes:
        known = self._known.get(number)
        if known is None:
            moves = bool(self._asked & self.ring.atoms(number))
            known = self._known[number] = self._found(number) if moves else self._zero
        return known

    def _found(self, number: int) -> Slopes:
        if number in self._asked:
            return [mpmath.mpf(int(number == v)) for v in self.variables]
        ring = self.ring
        match ring.generators[number]:
            case Abbreviation(meaning):
                return self(meaning)
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
                parts = [self._scaled(ring.generator(jet.raised(j)), q) for j, q in enumerate(jet.point)]
                return [mpmath.fsum(column) for column in zip(*parts, strict=True)]
            case other:
                return [self.value(other.derivative(ring, number, v)) for v in self.variables]

    def _scaled(self, outer: Polynomial, inner: Polynomial) -> Slopes:
        factor, slopes = self.value(outer), self(inner)
        return [factor * slope for slope in slopes]
