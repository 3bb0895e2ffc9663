"""Differential operators with polynomial coefficients: the expansion of a step, its adjoint, the generator of an SDE.

An operator sum_a c_a d^a is a map from multi-indices to polynomials. A step z -> z' has the expansion

    E f(z') = f + sum_k s^k (A_k f),   A_k = sum_a E[(z' - z)^a]_k d^a / a!,   s = sqrt(h),

and its adjoint acts on a density exp(-H) as a polynomial times that density:

    e^H A^* e^-H = sum_a (-1)^|a| D^a c_a,   D_i a = d_i a - (d_i H) a.

Source: talay1990expansion; vollmer2016exploration, section 3, for the expansion of the invariant law.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sgmcmc_verification.checks.proof.draws import Expectation
from sgmcmc_verification.checks.proof.errors import PrecisionLost
from sgmcmc_verification.checks.proof.functions import shortened
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Series

Index = tuple[int, ...]
Operator = Mapping[Index, Polynomial]
Moments = Mapping[Index, Sequence[Polynomial]]
"""a -> E[(z' - z)^a] at s^0, s^1, .., s^order."""


LONG = 30
"""Terms from which on the factor of a product of draws has a name in the moments."""


def moments(
    increment: Sequence[Series], order: int, expectation: Expectation, weight: Series | None = None
) -> dict[Index, list[Polynomial]]:
    """E[weight increment^a] up to s^order, for all multi-indices a for which it may not vanish.

    The weight is 1 unless given.

    Where the factors of the draws are long, as those of a matrix root are, they have names (`functions.Abbreviation`)
    until the expectation is taken.

    Raises:
        PrecisionLost: if the increment is not known to that order.
    """
    found: dict[Index, list[Polynomial]] = {}
    increment = [_abbreviated(change, expectation) for change in increment]

    def extend(place: int, index: Index, product: Series) -> None:
        if place == len(increment):
            if any(index):
                found[index] = [expectation(product.coefficient(k)) for k in range(order + 1)]
            return
        exponent = 0
        while product and product.valuation <= order:
            extend(place + 1, (*index, exponent), product)
            product, exponent = product * increment[place], exponent + 1
        if not product and product.precision <= order:
            raise PrecisionLost

    extend(0, (), increment[0].space.one if weight is None else weight)
    return found


def _abbreviated(change: Series, expectation: Expectation) -> Series:
    """A series whose coefficients are short polynomials in the draws."""
    random = lambda number: bool(expectation.draws(number))
    short = {k: shortened(p, LONG, random, whole=False) for k, p in change.coefficients.items()}
    return Series(change.space, short, change.precision)


def coefficient(moments_of: Moments, k: int) -> dict[Index, Polynomial]:
    """A_k, the operator at s^k."""
    factor = lambda index: Fraction(1, math.prod(map(math.factorial, index)))
    return {index: row[k].scaled(factor(index)) for index, row in moments_of.items() if row[k]}


class Density:
    """exp(-H) with respect to Lebesgue measure.

    Args:
        hamiltonian: H.
        variables: the numbers of the coordinates z.
    """

    def __init__(self, hamiltonian: Polynomial, variables: Sequence[int]) -> None:
        self.hamiltonian, self.variables = hamiltonian, tuple(variables)
        self.slope = [hamiltonian.derivative(v) for v in variables]

    def conjugated(self, p: Polynomial, i: int) -> Polynomial:
        """D_i p = d_i p - (d_i H) p, which is e^H d_i (p e^-H)."""
        return p.derivative(self.variables[i]) - self.slope[i] * p

    def adjoint(self, operator: Operator, weight: Polynomial | None = None) -> Polynomial:
        """e^H A^* (weight e^-H); the weight is 1 unless given."""
        ring = self.hamiltonian.ring
        total = ring.zero
        for index, c in operator.items():
            term = (c if weight is None else c * weight).scaled((-1) ** sum(index))
            for i, times in enumerate(index):
                for _ in range(times):
                    term = self.conjugated(term, i)
            total = total + term
        return total


def sum_of(operators: Sequence[tuple[Fraction, Operator]]) -> dict[Index, Polynomial]:
    """A linear combination of operators."""
    total: dict[Index, Polynomial] = {}
    for factor, operator in operators:
        for index, c in operator.items():
            scaled = c.scaled(factor)
            total[index] = total[index] + scaled if index in total else scaled
    return {index: c for index, c in total.items() if c}


def composed(a: Operator, b: Operator, variables: Sequence[int]) -> dict[Index, Polynomial]:
    """The operator f -> a (b f), by Leibniz' rule."""
    total: dict[Index, Polynomial] = {}
    for outer, x in a.items():
        for inner, y in b.items():
            for used in itertools.product(*(range(k + 1) for k in outer)):
                term = y
                for i, times in enumerate(used):
                    for _ in range(times):
                        term = term.derivative(variables[i])
                if not term:
                    continue
                ways = math.prod(math.comb(n, k) for n, k in zip(outer, used, strict=True))
                index = tuple(n - k + m for n, k, m in zip(outer, used, inner, strict=True))
                product = (x * term).scaled(ways)
                total[index] = total[index] + product if index in total else product
    return {index: c for index, c in total.items() if c}


def unit(size: int, *places: int) -> Index:
    """The multi-index of a derivative by the coordinates at some places."""
    return tuple(places.count(i) for i in range(size))


def drift_of(density: Density, D: Any, Q: Any) -> list[Polynomial]:
    """f = -(D + Q) grad H + Gamma, Gamma_i = sum_j d_j (D + Q)_ij. Source: ma2015complete, equation (3)."""
    variables, ring = density.variables, density.hamiltonian.ring
    n = len(variables)
    S = D + Q
    terms = lambda i: (S[i, j].derivative(variables[j]) - S[i, j] * density.slope[j] for j in range(n))
    return [ring.sum(terms(i)) for i in range(n)]


def generator_of(density: Density, D: Any, Q: Any) -> dict[Index, Polynomial]:
    """L = f . grad + sum_ij D_ij d_i d_j."""
    n = len(density.variables)
    parts: list[tuple[Fraction, Operator]] = [
        (Fraction(1), {unit(n, i): p}) for i, p in enumerate(drift_of(density, D, Q))
    ]
    parts += [(Fraction(1), {unit(n, i, j): D[i, j]}) for i in range(n) for j in range(n)]
    return sum_of(parts)
