"""The test for zero: what is proved, what holds to 50 digits only, and what is round-off of the constants of a program.

`proved` is the zero polynomial, after p R(p)^2 = 1 and sin^2 + cos^2 = 1 have been used; `verified` vanishes to
50 digits at random points of the domain. An opaque function that obeys a relation which the ring does not know gives
`verified` where it should give `proved`, and never the other way round: generators that are not related are free.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Literal

import mpmath
import numpy as np
from mpmath import mpf

from sgmcmc_verification.checks.proof.draws import evaluator, in_floats
from sgmcmc_verification.checks.proof.errors import NotReal, Unreadable
from sgmcmc_verification.checks.proof.functions import Abbreviation, Applied, InverseRoot, Values, by_power, is_positive
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring, Value

Status = Literal["proved", "verified", "round-off", "single", "nonzero"]
"""Ranks of a zero, the best first; `single`: to the round-off of a constant in single precision."""
RANKS: tuple[Status, ...] = ("proved", "verified", "round-off", "single", "nonzero")

DIGITS = 50
MORE_DIGITS = 150
"""Digits with which a value that is not zero is looked at again."""
TINY = mpf(10) ** (20 - DIGITS)
"""Round-off of an identity at a point."""
POINTS = 3
ATTEMPTS = 200
WITNESSES = 300
FAR = mpf(10) ** -3
"""Relative difference above which values differ, whatever was rounded."""
WORK = 30_000
"""Products of terms that a proof by relations may take; a fifth of a second."""
OPERATIONS = 64
"""Roundings that a constant of a program went through, at the most: products and roots of a few literals."""


def status(p: Polynomial) -> Status:
    """The rank of a polynomial as a zero."""
    if not p:
        return "proved"
    known = p.ring.statuses.get(p)
    if known is None:
        known = p.ring.statuses[p] = _found_status(p)
    return known


def _found_status(p: Polynomial) -> Status:
    found = numerical_status(p)
    return "proved" if found == "verified" and _proved(p) else found


def numerical_status(p: Polynomial) -> Status:
    """The rank by values at random points alone."""
    known = p.ring.numerical.get(p)
    if known is None:
        known = p.ring.numerical[p] = _status_at_points(p)
    return known


def _status_at_points(p: Polynomial) -> Status:
    eps, single = (OPERATIONS * float(np.finfo(kind).eps) for kind in (np.float64, np.float32))
    worst = mpf(0)
    for seed in range(POINTS):
        size = relative_size(p, seed)
        if size >= TINY:  # or the round-off of large numbers inside of functions and names
            size = relative_size(p, seed, MORE_DIGITS)
        worst = max(worst, size)
        if worst >= single:
            return "nonzero"
    if worst < TINY:
        return "verified"
    return "round-off" if worst < eps else "single"


def is_zero(p: Polynomial) -> bool:
    """True if a polynomial is zero, proved or to 50 digits; which of the two is not asked."""
    return not p or numerical_status(p) == "verified"


def surely_differ(a: Polynomial, b: Polynomial) -> bool:
    """True if two polynomials differ by more than round-off at one point: cheaper than to ask if a - b = 0."""
    with mpmath.workdps(DIGITS):
        value = next(_points(a.ring, 0))
        try:
            left, right = (_kept(p, value) for p in (a, b))
        except (NotReal, ZeroDivisionError):
            return False
        return abs(left - right) > FAR * (1 + abs(left) + abs(right))


def _kept(p: Polynomial, value: Values) -> Value:
    """The value at the first point, which is kept for each polynomial."""
    values = p.ring.values
    if p not in values:
        values[p] = value(p)
    return values[p]


def relative_size(p: Polynomial, seed: int, digits: int = DIGITS) -> Value:
    """|p| over the sum of its terms' sizes (or 1, if that is smaller) at a random point.

    Raises:
        NotReal: if no point was found at which all functions of p are real.
    """
    monomials = [p.ring.monomial(factors, a) for factors, a in p.terms()]
    with mpmath.workdps(digits):
        for value in _points(p.ring, seed):
            try:
                parts = [value(monomial) for monomial in monomials]
            except (NotReal, ZeroDivisionError):
                continue
            return abs(mpmath.fsum(parts)) / max(mpmath.fsum(parts, absolute=True), mpf(1))
    raise NotReal


def _points(ring: Ring, seed: int, spread: Fraction = Fraction(4, 3)) -> Iterator[Values]:
    """Random points; the values of generators there are kept for all polynomials that are asked for."""
    for attempt in range(ATTEMPTS):
        name = (seed, attempt, spread, mpmath.mp.dps)
        if name not in ring.points:
            ring.points[name] = at_random(ring, f"{seed} {attempt}", spread)
        yield ring.points[name]


def random_point(p: Polynomial, seed: int, spread: Fraction = Fraction(4, 3)) -> Values:
    """The values of polynomials at a random point at which p is real, of either sign where that is possible."""
    for value in _points(p.ring, seed, spread):
        try:
            value(p)
        except (NotReal, ZeroDivisionError):
            continue
        return value
    raise NotReal


def points_with(ring: Ring, assumed: Mapping[Polynomial, bool]) -> Iterator[Values]:
    """Random points at which each polynomial is negative as assumed."""
    with mpmath.workdps(DIGITS):
        for value in _points(ring, 0):
            try:
                if all((value(p) < 0) == negative for p, negative in assumed.items()):
                    yield value
            except (NotReal, ZeroDivisionError):
                continue


def at_random(ring: Ring, seed: str, spread: Fraction = Fraction(4, 3)) -> Values:
    """The values of polynomials at a random point; a positive generator has a positive value."""

    def free(number: int) -> Value:
        source = random.Random(f"{seed} {number}")
        size = mpf(source.getrandbits(180)) / 2**180 * spread.numerator / spread.denominator + mpf(1) / 3
        return size if is_positive(ring.generators[number]) else size * source.choice((-1, 1))

    return evaluator(ring, {}, free)


def _proved(p: Polynomial) -> bool:
    """True if a polynomial is shown to vanish with moderate work."""
    try:
        with p.ring.limited(WORK):
            return vanishes(p)
    except Unreadable:
        return False


def vanishes(p: Polynomial) -> bool:
    """True if a polynomial is zero by the relations p R(p)^2 = 1 and sin^2 + cos^2 = 1.

    p is sorted by the powers of the root that was met last; even and odd powers are apart, and each sum
    sum_k q_k R^k with k of one parity is zero iff sum_k q_k base^((K - k) / 2) is, K the largest k.
    """
    if not p:
        return True
    ring = p.ring
    for number in sorted(p.numbers(), reverse=True):
        match ring.generators[number]:
            case InverseRoot(base):
                return all(vanishes(part) for part in _cleared(p, number, base))
            case Abbreviation(meaning):
                parts = by_power(p, number)
                return vanishes(ring.sum(q * meaning**k for k, q in parts.items()))
            case Applied("sin", argument):
                rewritten = _without_squares(p, number, ring.generator(Applied("cos", argument)))
                if rewritten is not None:
                    return vanishes(rewritten)
            case _:
                continue
    return False


def _cleared(p: Polynomial, number: int, base: Polynomial) -> list[Polynomial]:
    """The even and the odd part of p in a root R, multiplied by powers of its base so that no R is left."""
    parts, cleared = by_power(p, number), []
    for parity in (0, 1):
        exponents = [k for k in parts if k % 2 == parity]
        top = max(exponents, default=0)
        cleared.append(p.ring.sum(parts[k] * base ** ((top - k) // 2) for k in exponents))
    return cleared


def _without_squares(p: Polynomial, number: int, cosine: Polynomial) -> Polynomial | None:
    """p with sin^2 replaced by 1 - cos^2; None if there is none."""
    parts = by_power(p, number)
    if not any(k > 1 for k in parts):
        return None
    square = p.ring.one - cosine * cosine
    return p.ring.sum(q * square ** (k // 2) * p.ring.power(number, k % 2) for k, q in parts.items() if k >= 0)


def witness(assumed: Mapping[Polynomial, bool]) -> bool:
    """True if a point is found at which each polynomial is negative as assumed; predicates on draws are left out.

    Coordinates and derivatives of the potential are drawn with sizes from 0.1 to 1e7, since thresholds have any size.
    """
    conditions = [(p, negative) for p, negative in assumed.items() if not p.has("draw")]
    if not conditions:
        return True
    ring = conditions[0][0].ring
    with mpmath.workdps(15):
        for attempt in range(WITNESSES):
            for values in (in_floats, _in_fifteen_digits):
                value = values(ring, _any_size(ring, attempt))
                try:
                    if all((value(p) < 0) == negative for p, negative in conditions):
                        return True
                    break
                except OverflowError:  # the same point with numbers that do not overflow
                    continue
                except (NotReal, ZeroDivisionError):
                    break
    return False


def _any_size(ring: Ring, seed: int) -> Callable[[int], float]:
    """Numbers with sizes from 0.1 to 1e7, by the numbers of generators."""
    source = random.Random(seed)

    def free(number: int) -> float:
        size = source.gauss(0, 3) * 10 ** source.choice((-1, 0, 0, 1, 2, 4, 7))
        return abs(size) if is_positive(ring.generators[number]) else size

    return free


def _in_fifteen_digits(ring: Ring, free: Callable[[int], float]) -> Values:
    return evaluator(ring, {}, lambda number: mpf(free(number)))
