"""The ring of sparse Laurent polynomials over Q in generators that appear while a program is read.

A generator is a coordinate, a draw, a derivative of the potential at a point, or an opaque function of polynomials; all
that this ring knows of it is how it reduces powers of itself and what its derivative is. Two polynomials are equal iff
their canonical forms are: a numerator with integer coefficients over one positive integer, without a common factor.

A `Ring` belongs to one proof. It interns generators and monomials, so that a product of two monomials is a look-up of
two small integers, and it holds the table of these products; nothing is shared between proofs, nothing outlives them.

Written by hand; measured on products of two random polynomials of n terms each, with as many generators as occur, in
microseconds on one core (in the first column monomials are multiplied for the first time, in the second looked up):

    n, generators    first     again    sympy.polys    symengine    python-flint
    5, 8                87        11             18            9               2
    30, 20           2 107       224            988          392              28
    200, 40        129 117    23 877        108 692       50 271           2 843
    1000, 60     9 314 642   884 648      3 876 620    2 002 805         104 745

A proof multiplies the same monomials over and over and meets up to a few hundred terms. python-flint would be eight
times faster, and would be one more compiled dependency; it needs all generators beforehand, has no negative exponents,
keeps a number for each generator in every monomial, and would be left and entered again for reductions such as r^2 = 2
or R(p)^2 = 1/p. Generators appear here while a program is read.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, Literal, Protocol

from sgmcmc_verification.checks.proof.errors import Unreadable

Value = Any
"""A real number of mpmath, which has no types."""
Kind = Literal["state", "draw", "function", "number"]
"""The role of a generator: a number of the state, a draw, a function of its arguments, or a number."""
MOST_WORK = 4_000_000
"""Products of two terms in one ring: half a minute. A proof that needs more is given up, on any machine alike."""
_limit: ContextVar[int] = ContextVar("limit", default=MOST_WORK)
DEEPEST = 4
"""Functions inside of each other in the text of a polynomial."""
EVALUATION = 2
"""Products of terms that take as long as the value of one term to 50 digits."""
Monomial = tuple[tuple[int, int], ...]
"""Pairs (number of a generator, exponent other than 0), in the order of the numbers."""


@contextlib.contextmanager
def rings_limited(work: int) -> Iterator[None]:
    """A context in which the rings that are made allow only so many products of terms."""
    token = _limit.set(work)
    try:
        yield
    finally:
        _limit.reset(token)


class Generator(Protocol):
    """An element that polynomials are made of; equal generators are the same element."""

    @property
    def kind(self) -> Kind:
        """The role it has."""
        ...

    @property
    def arguments(self) -> tuple["Polynomial", ...]:
        """Polynomials that this one is a function of; none if it is free."""
        ...

    def reduced(self, ring: "Ring", number: int, exponent: int) -> "Polynomial | None":
        """This generator to a power in normal form; None if the power of it is normal."""
        ...

    def derivative(self, ring: "Ring", number: int, variable: int) -> "Polynomial":
        """The derivative by another generator, which is not this one."""
        ...

    def value(self, at: "Callable[[Polynomial], Value]") -> Value | None:
        """Its value, given those of its arguments; None if it is free to take any."""
        ...

    def __str__(self) -> str: ...


class Free:
    """A generator without relations and without derivatives."""

    @property
    def kind(self) -> Kind:
        """A number of the state."""
        return "state"

    @property
    def arguments(self) -> tuple["Polynomial", ...]:
        """No arguments."""
        return ()

    def reduced(self, ring: "Ring", number: int, exponent: int) -> "Polynomial | None":
        """Every power is normal."""
        del ring, number, exponent

    def derivative(self, ring: "Ring", number: int, variable: int) -> "Polynomial":
        """Zero."""
        del number, variable
        return ring.zero

    def value(self, at: "Callable[[Polynomial], Value]") -> Value | None:
        """Any value."""
        del at


class Ring:
    """Generators and monomials of one proof, and the tables of what was computed with them.

    Args:
        most_work: products of terms after which a proof is given up, if `rings_limited` does not allow fewer.

    Attributes:
        generators: by their numbers.
        statuses: what is known of polynomials as zeros (`zero.status`).
        numerical: what their values say of that (`zero.is_zero`).
        points: the values of polynomials at points that are used again (`zero.random_point`).
        values: those at the first of them (`zero.surely_differ`).
        depth: of the functions inside of each other whose text is being made.
    """

    def __init__(self, most_work: int = MOST_WORK) -> None:
        self.generators: list[Generator] = []
        self._numbers: dict[Generator, int] = {}
        self._monomials: list[Monomial] = []
        self._monomial_numbers: dict[Monomial, int] = {}
        self._products: dict[tuple[int, int], tuple[int, Polynomial | None]] = {}
        self._derivatives: dict[tuple[int, int], Polynomial] = {}
        self._atoms: dict[int, frozenset[int]] = {}
        self.statuses: dict[Polynomial, Any] = {}
        self.numerical: dict[Polynomial, Any] = {}
        self.points: dict[Any, Callable[[Polynomial], Value]] = {}
        self.values: dict[Polynomial, Value] = {}
        self.depth = 0
        self._work, self._most_work = 0, min(most_work, _limit.get())
        self.one_monomial = self._intern(())
        self.zero = Polynomial(self, {}, 1)
        self.one = Polynomial(self, {self.one_monomial: 1}, 1)

    def number(self, generator: Generator) -> int:
        """The number of a generator, a new one if it has not been met."""
        known = self._numbers.get(generator)
        if known is None:
            known = self._numbers[generator] = len(self.generators)
            self.generators.append(generator)
        return known

    def generator(self, generator: Generator, exponent: int = 1) -> "Polynomial":
        """A power of a generator as a polynomial."""
        return self.power(self.number(generator), exponent)

    def power(self, number: int, exponent: int) -> "Polynomial":
        """A power of the generator of a number, in normal form."""
        if not exponent:
            return self.one
        reduced = self.generators[number].reduced(self, number, exponent)
        return self.monomial(((number, exponent),)) if reduced is None else reduced

    def constant(self, value: Fraction | int) -> "Polynomial":
        """A rational number as a polynomial."""
        value = Fraction(value)
        return Polynomial(self, {self.one_monomial: value.numerator}, value.denominator) if value else self.zero

    def monomial(self, factors: Monomial, coefficient: Fraction | int = 1) -> "Polynomial":
        """A monomial whose factors are in normal form and in order."""
        value = Fraction(coefficient)
        return Polynomial(self, {self._intern(factors): value.numerator}, value.denominator) if value else self.zero

    def atoms(self, number: int) -> frozenset[int]:
        """A generator and all those inside of its arguments."""
        known = self._atoms.get(number)
        if known is None:
            inner = [self.atoms(n) for p in self.generators[number].arguments for n in p.numbers()]
            known = self._atoms[number] = frozenset({number}).union(*inner)
        return known

    def factors(self, monomial: int) -> Monomial:
        """The factors of the monomial of a number."""
        return self._monomials[monomial]

    def sum(self, terms: Iterable["Polynomial"]) -> "Polynomial":
        """The sum of polynomials, in one pass over their terms."""
        parts = [term for term in terms if term]
        if len(parts) < 2:
            return parts[0] if parts else self.zero
        denominator = math.lcm(*(part.denominator for part in parts))
        total: dict[int, int] = {}
        for part in parts:
            scale = denominator // part.denominator
            for m, a in part.numerators.items():
                total[m] = total.get(m, 0) + a * scale
        return Polynomial(self, {m: a for m, a in total.items() if a}, denominator)

    def product(self, m: int, n: int) -> "tuple[int, Polynomial | None]":
        """The product of two monomials: a monomial, or (of reduced powers) a polynomial in its place."""
        key = (m, n) if m <= n else (n, m)
        known = self._products.get(key)
        if known is None:
            known = self._products[key] = self._multiplied(self._monomials[m], self._monomials[n])
        return known

    def spend(self, work: int) -> None:
        """Count products of terms. Raises Unreadable if they are too many."""
        self._work += work
        if self._work > self._most_work:
            raise Unreadable(f"polynomials that take more than {self._most_work:.0e} products of terms")

    @contextlib.contextmanager
    def limited(self, work: int) -> Iterator[None]:
        """A context in which only so many products of terms may be made; they do not count afterwards."""
        before = self._work, self._most_work
        self._most_work = min(self._most_work, self._work + work)
        try:
            yield
        finally:
            self._work, self._most_work = before

    def derivative(self, p: "Polynomial", variable: int) -> "Polynomial":
        """The derivative of a polynomial by the generator of a number."""
        parts = []
        for factors, coefficient in p.terms():
            for place, (number, exponent) in enumerate(factors):
                inner = self._inner_derivative(number, variable)
                if inner:
                    lower = ((number, exponent - 1),) if exponent != 1 else ()
                    rest = (*factors[:place], *lower, *factors[place + 1 :])
                    parts.append(self.monomial(rest, coefficient * exponent) * inner)
        return self.sum(parts)

    def _inner_derivative(self, number: int, variable: int) -> "Polynomial":
        if number == variable:
            return self.one
        key = (number, variable)
        known = self._derivatives.get(key)
        if known is None:
            known = self._derivatives[key] = self.generators[number].derivative(self, number, variable)
        return known

    def _intern(self, factors: Monomial) -> int:
        known = self._monomial_numbers.get(factors)
        if known is None:
            known = self._monomial_numbers[factors] = len(self._monomials)
            self._monomials.append(factors)
        return known

    def _multiplied(self, a: Monomial, b: Monomial) -> "tuple[int, Polynomial | None]":
        exponents = dict(a)
        for number, exponent in b:
            exponents[number] = exponents.get(number, 0) + exponent
        plain: list[tuple[int, int]] = []
        changed: list[Polynomial] = []
        for number, exponent in sorted(exponents.items()):
            reduced = self.generators[number].reduced(self, number, exponent) if exponent else None
            if reduced is not None:
                changed.append(reduced)
            elif exponent:
                plain.append((number, exponent))
        monomial = self._intern(tuple(plain))
        if not changed:
            return monomial, None
        product = Polynomial(self, {monomial: 1}, 1)
        for factor in changed:
            product = product * factor
        return monomial, product


class Polynomial:
    """A sparse Laurent polynomial sum_m (a_m / b) m with integers a_m != 0 and b > 0 that have no common factor.

    Immutable. Two polynomials of one ring are equal iff they have the same terms.
    """

    __slots__ = ("_hash", "denominator", "numerators", "ring")

    def __init__(self, ring: Ring, numerators: Mapping[int, int], denominator: int) -> None:
        common = math.gcd(denominator, *numerators.values()) if denominator != 1 else 1
        self.ring = ring
        self.numerators: Mapping[int, int] = (
            numerators if common == 1 else {m: a // common for m, a in numerators.items()}
        )
        self.denominator = denominator // common
        self._hash: int | None = None

    def __bool__(self) -> bool:
        return bool(self.numerators)

    def __len__(self) -> int:
        return len(self.numerators)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Polynomial)
            and self.denominator == other.denominator
            and self.numerators == other.numerators
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.denominator, frozenset(self.numerators.items())))
        return self._hash

    def __add__(self, other: "Polynomial") -> "Polynomial":
        if not other.numerators:
            return self
        if not self.numerators:
            return other
        if self.denominator == other.denominator:
            denominator, left, right = self.denominator, 1, 1
        else:
            denominator = math.lcm(self.denominator, other.denominator)
            left, right = denominator // self.denominator, denominator // other.denominator
        result = dict(self.numerators) if left == 1 else {m: a * left for m, a in self.numerators.items()}
        for m, b in other.numerators.items():
            value = result.get(m, 0) + b * right
            if value:
                result[m] = value
            else:
                del result[m]
        return Polynomial(self.ring, result, denominator)

    def __neg__(self) -> "Polynomial":
        return Polynomial(self.ring, {m: -a for m, a in self.numerators.items()}, self.denominator)

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + -other

    def scaled(self, factor: Fraction | int) -> "Polynomial":
        """This polynomial times a rational number."""
        if not factor:
            return self.ring.zero
        numerator, denominator = Fraction(factor).as_integer_ratio()
        if numerator == 1 == denominator:
            return self
        scaled = {m: a * numerator for m, a in self.numerators.items()}
        return Polynomial(self.ring, scaled, self.denominator * denominator)

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        if not self.numerators or not other.numerators:
            return self.ring.zero
        result: dict[int, int] = {}
        rewritten: list[Polynomial] = []
        product = self.ring.product
        self.ring.spend(len(self) * len(other))
        for m, a in self.numerators.items():
            for n, b in other.numerators.items():
                monomial, instead = product(m, n)
                if instead is None:
                    result[monomial] = result.get(monomial, 0) + a * b
                else:
                    rewritten.append(instead.scaled(a * b))
        denominator = self.denominator * other.denominator
        plain = Polynomial(self.ring, {m: a for m, a in result.items() if a}, denominator)
        if not rewritten:
            return plain
        return self.ring.sum([plain, *(term.scaled(Fraction(1, denominator)) for term in rewritten)])

    def __pow__(self, exponent: int) -> "Polynomial":
        if exponent < 0:
            raise ValueError("a negative power of a polynomial is not a polynomial")
        result, base = self.ring.one, self
        while exponent:
            if exponent & 1:
                result = result * base
            exponent >>= 1
            base = base * base if exponent else base
        return result

    def terms(self) -> Iterator[tuple[Monomial, Fraction]]:
        """Pairs of a monomial and its coefficient."""
        for m, a in self.numerators.items():
            yield self.ring.factors(m), Fraction(a, self.denominator)

    def numbers(self) -> set[int]:
        """The numbers of the generators in it."""
        return {number for m in self.numerators for number, _ in self.ring.factors(m)}

    def atoms(self) -> frozenset[int]:
        """The numbers of the generators in it and in their arguments."""
        return frozenset().union(*(self.ring.atoms(number) for number in self.numbers()))

    def has(self, kind: Kind) -> bool:
        """True if a generator of a kind is in it or in the arguments of its functions."""
        return any(self.ring.generators[number].kind == kind for number in self.atoms())

    def coefficient(self, factors: Monomial = ()) -> Fraction:
        """The coefficient of a monomial, of the constant term by default."""
        return next((value for term, value in self.terms() if term == factors), Fraction(0))

    @property
    def rational(self) -> Fraction | None:
        """The value of a constant polynomial; None of any other."""
        if not self.numerators:
            return Fraction(0)
        if len(self.numerators) == 1 and self.ring.one_monomial in self.numerators:
            return Fraction(self.numerators[self.ring.one_monomial], self.denominator)
        return None

    def derivative(self, variable: int) -> "Polynomial":
        """The derivative by the generator of a number."""
        return self.ring.derivative(self, variable)

    def leading(self) -> Fraction:
        """The coefficient of its first monomial in a fixed order, by which proportional polynomials are told."""
        first = min(self.numerators)
        return Fraction(self.numerators[first], self.denominator)

    def text(self, most: int = 6) -> str:
        """This polynomial for readers, its first terms if it has many, and functions in it to a depth of `DEEPEST`."""
        if not self:
            return "0"
        if self.ring.depth == DEEPEST:
            return "..."
        self.ring.depth += 1
        try:
            terms = sorted(self.terms(), key=lambda term: (len(term[0]), term[0]))
            words = [_signed(self.ring, factors, value) for factors, value in terms[:most]]
        finally:
            self.ring.depth -= 1
        more = f" ... ({len(terms)} terms)" if len(terms) > most else ""
        return (" ".join(words) + more).removeprefix("+ ")

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Polynomial({self.text()})"


def _signed(ring: Ring, factors: Monomial, value: Fraction) -> str:
    size = abs(value)
    number = str(size) if size.denominator < 10**6 else f"{float(size):.6g}"
    parts = [f"{ring.generators[g]}" + (f"^{e}" if e != 1 else "") for g, e in factors]
    if not parts or size != 1:
        parts.insert(0, number)
    return ("-" if value < 0 else "+") + " " + " ".join(parts)
