"""Polynomials as linear combinations of others, with rational coefficients, if there is exactly one.

values_i = sum_k c_k terms_ki for all i is a linear system with one equation for each i and each monomial. Numbers of a
program such as sqrt(2) are rational here, and off by their round-off: equations hold up to that.
"""

from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np

from sgmcmc_verification.checks.proof.errors import NotReal, Unreadable
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet
from sgmcmc_verification.checks.proof.ring import Generator, Polynomial
from sgmcmc_verification.checks.proof.zero import DIGITS, OPERATIONS, Status, random_point, status

ROUND_OFF = Fraction(OPERATIONS * float(np.finfo(np.float64).eps))
SIMPLE = 10_000
"""Largest denominator of a coefficient that is what the author wrote."""

ZERO: tuple[Status, ...] = ("proved", "verified", "round-off")

Vector = Sequence[Polynomial]


def combination(values: Vector, terms: Sequence[Vector]) -> tuple[Fraction, ...] | None:
    """c with values_i = sum_k c_k terms_ki for all i; None if there is none or more than one."""
    rows: dict[tuple[int, int], list[Fraction]] = {}
    for place, column in enumerate([*terms, values]):
        for i, p in enumerate(column):
            for m, numerator in p.numerators.items():
                row = rows.setdefault((i, m), [Fraction(0)] * (len(terms) + 1))
                row[place] = Fraction(numerator, p.denominator)
    found = _solved(list(rows.values()), len(terms))
    return _at_points(values, terms) if found is None else found


def _at_points(values: Vector, terms: Sequence[Vector]) -> tuple[Fraction, ...] | None:
    """The same where functions obey relations that monomials do not show: guessed at points, and then verified."""
    ring, everything = values[0].ring, [*values, *(p for term in terms for p in term)]
    rows: list[list[Fraction]] = []
    try:
        with mpmath.workdps(DIGITS):
            for seed in range(len(terms) + 2):
                at = random_point(ring.sum(p * p for p in everything), seed)
                exact = lambda p, at=at: Fraction(str(mpmath.nstr(at(p), 40)))
                rows += [[exact(p) for p in (*column, value)] for *column, value in zip(*terms, values, strict=True)]
    except (NotReal, Unreadable):
        return None
    found = _solved(rows, len(terms))
    if found is None:
        return None
    rest = zip(values, zip(*terms, strict=True), strict=True)
    left = [value - ring.sum(p.scaled(c) for p, c in zip(row, found, strict=True)) for value, row in rest]
    return found if vanishes(left) else None


def multiple(values: Vector, term: Vector) -> Fraction | None:
    """c with values = c term, or None; no multiple of zero is one."""
    found = combination(values, [term])
    return None if found is None else found[0]


def vanishes(values: Vector) -> bool:
    """True if polynomials are zero, proved, to 50 digits, or to the round-off of the constants of the program."""
    try:
        return all(status(p) in ZERO for p in values)
    except NotReal:
        return False


def by_form(values: Vector) -> dict[str, list[Polynomial]]:
    """A vector as a sum of vectors, each of the monomials of one form: `grad U`, `p`, `xi p`, `1`."""
    parts: dict[str, list[Polynomial]] = {}
    for i, p in enumerate(values):
        for factors, value in p.terms():
            names = [_form(p.ring.generators[g]) + (f"^{e}" if e != 1 else "") for g, e in factors]
            row = parts.setdefault(" ".join(names) or "1", [p.ring.zero] * len(values))
            row[i] = row[i] + p.ring.monomial(factors, value)
    return parts


def _form(generator: Generator) -> str:
    """A generator without the number of its coordinate: `p` for p1, `grad U` for a first derivative."""
    if isinstance(generator, Jet):
        return {0: "", 1: "grad "}.get(sum(generator.orders), f"d^{sum(generator.orders)} ") + generator.name
    return str(generator).rstrip("0123456789") if isinstance(generator, Coordinate) else str(generator)


def _solved(rows: list[list[Fraction]], unknowns: int) -> tuple[Fraction, ...] | None:
    small = lambda row: max(map(abs, row), default=Fraction(0)) * ROUND_OFF
    for k in range(unknowns):
        pivot = max(range(k, len(rows)), key=lambda i: abs(rows[i][k]), default=None)
        if pivot is None or abs(rows[pivot][k]) <= ROUND_OFF:
            return None  # not unique
        rows[k], rows[pivot] = rows[pivot], rows[k]
        head = [a / rows[k][k] for a in rows[k]]
        rows[k] = head
        for i, row in enumerate(rows):
            if i != k and row[k]:
                bound = small([*row, *(row[k] * b for b in head)])
                left = [a - row[k] * b for a, b in zip(row, head, strict=True)]
                rows[i] = [a if abs(a) > bound else Fraction(0) for a in left]
    if any(row[unknowns] for row in rows[unknowns:]):
        return None
    return tuple(_simple(rows[k][unknowns]) for k in range(unknowns))


def _simple(value: Fraction) -> Fraction:
    near = value.limit_denominator(SIMPLE)
    return near if abs(near - value) <= ROUND_OFF * max(abs(value), 1) else value
