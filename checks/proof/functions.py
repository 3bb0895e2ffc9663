"""Opaque functions of polynomials: elements of the ring of which no more is used than how they are derived.

    R(p) = p^(-1/2),  p^e,  exp, log, sin, cos, tanh, logistic, atan, erf

A root is kept as R and not as sqrt(p), so that 1/p = R^2 and sqrt(p) = p R need one generator. That p R^2 = 1 is used
where a polynomial is tested for zero (`zero`), not in products. Logarithms, exponentials and roots of monomials are
split into those of their factors: exp(a + b) = exp(a) exp(b), and sqrt(g) for a single generator g (which has to be
positive for the root to be real) is g times the half power g^(-1/2), whose square is 1/g.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import mpmath
from mpmath import mpf

from sgmcmc_verification.checks.proof.errors import NotReal, Unreadable
from sgmcmc_verification.checks.proof.ring import Free, Generator, Kind, Monomial, Polynomial, Ring, Value

HALF = Fraction(1, 2)
MOST_FACTORS = 12
"""Factors of one term without a name: an iteration such as u <- (u / v)^1/2 makes them more and more."""
Values = Callable[[Polynomial], Value]
"""The value of a polynomial at a point."""


class Numeric(Free):
    """A generator that is a number."""

    @property
    def kind(self) -> Kind:
        """A number."""
        return "number"


class Function:
    """A generator that is a function of its arguments."""

    @property
    def kind(self) -> Kind:
        """A function."""
        return "function"

    def reduced(self, ring: Ring, number: int, exponent: int) -> Polynomial | None:
        """Every power is normal."""
        del ring, number, exponent


@dataclass(frozen=True)
class Root(Numeric):
    """The square root of an integer without square factors: r^2 = n."""

    radicand: int

    def reduced(self, ring: Ring, number: int, exponent: int) -> Polynomial | None:
        """r^(2 k + i) = n^k r^i with i in {0, 1}."""
        if exponent == 1:
            return None
        whole, left = divmod(exponent, 2)
        return ring.power(number, left).scaled(Fraction(self.radicand) ** whole)

    def value(self, at: Values) -> Value | None:
        """Its value."""
        del at
        return mpmath.sqrt(self.radicand)

    def __str__(self) -> str:
        return f"sqrt{self.radicand}"


@dataclass(frozen=True)
class Constant(Numeric):
    """A number that is not rational, such as pi; infinity too, of which only comparisons are read."""

    name: str
    positive: bool = True

    def value(self, at: Values) -> Value | None:
        """Its value."""
        del at
        return +mpmath.pi if self.name == "pi" else mpmath.inf

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class HalfPower(Function):
    """g^(-1/2) of a positive generator g; its square is 1/g."""

    base: Polynomial

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The generator under the root."""
        return (self.base,)

    def reduced(self, ring: Ring, number: int, exponent: int) -> Polynomial | None:
        """g^(-(2 k + i) / 2) = g^(-k) (g^(-1/2))^i with i in {0, 1}."""
        if exponent == 1:
            return None
        (inner,) = self.base.numbers()
        whole, left = divmod(exponent, 2)
        return ring.power(inner, -whole) * ring.power(number, left)

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """-g^(-3/2) g' / 2."""
        (inner,) = self.base.numbers()
        return (ring.power(number, 1) * ring.power(inner, -1) * self.base.derivative(variable)).scaled(-HALF)

    def value(self, at: Values) -> Value | None:
        """Its value."""
        return 1 / mpmath.sqrt(positive(at(self.base)))

    def __str__(self) -> str:
        return f"{self.base}^-1/2"


@dataclass(frozen=True)
class InverseRoot(Function):
    """R(p) = p^(-1/2) of a polynomial with more than one term."""

    base: Polynomial

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The polynomial under the root."""
        return (self.base,)

    def reduced(self, ring: Ring, number: int, exponent: int) -> Polynomial | None:
        """R^(-2 k + i) = p^k R^i for a negative power; positive powers are normal."""
        if exponent > 0:
            return None
        whole, left = divmod(-exponent, 2)
        return self.base ** (whole + left) * ring.power(number, left)

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """-R^3 p' / 2."""
        return (ring.power(number, 3) * self.base.derivative(variable)).scaled(-HALF)

    def value(self, at: Values) -> Value | None:
        """Its value."""
        return 1 / mpmath.sqrt(positive(at(self.base)))

    def __str__(self) -> str:
        return f"rsqrt({self.base.text(3)})"


@dataclass(frozen=True)
class RationalPower(Function):
    """p^e for an exponent that is no multiple of 1/2."""

    base: Polynomial
    exponent: Fraction

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The base."""
        return (self.base,)

    def reduced(self, ring: Ring, number: int, exponent: int) -> Polynomial | None:
        """Whole powers of p are taken out."""
        del ring, number
        if exponent == 1:
            return None
        total = self.exponent * exponent
        return power(self.base, total) if total.denominator <= 2 else None

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """e p^e p' / p."""
        inner = self.base.derivative(variable)
        return (ring.power(number, 1) * power(self.base, Fraction(-1)) * inner).scaled(self.exponent)

    def value(self, at: Values) -> Value | None:
        """Its value."""
        exponent = mpf(self.exponent.numerator) / self.exponent.denominator
        return positive(at(self.base)) ** exponent

    def __str__(self) -> str:
        return f"({self.base.text(3)})^({self.exponent})"


@dataclass(frozen=True)
class Applied(Function):
    """A function by name: exp, log, sin, cos, tanh, logistic, atan, erf, or min0, which is min(p, 0)."""

    name: str
    argument: Polynomial

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The argument."""
        return (self.argument,)

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """The chain rule."""
        del number
        inner = self.argument.derivative(variable)
        return derivatives(self.name, self.argument, 1)[1] * inner if inner else ring.zero

    def value(self, at: Values) -> Value | None:
        """Its value."""
        argument = at(self.argument)
        match self.name:
            case "log":
                return mpmath.log(positive(argument))
            case "min0":
                return min(argument, mpf(0))
            case "logistic":
                return 1 / (1 + mpmath.exp(-argument))
            case name:
                return getattr(mpmath, name)(argument)

    def __str__(self) -> str:
        return f"{self.name}({self.argument.text(3)})"


@dataclass(frozen=True)
class Absolute(Function):
    """|p|, whose square is p^2; with it max(a, b) = (a + b + |a - b|) / 2."""

    argument: Polynomial

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The argument."""
        return (self.argument,)

    def reduced(self, ring: Ring, number: int, exponent: int) -> Polynomial | None:
        """|p|^(2 k + i) = p^(2 k) |p|^i with i in {0, 1} for k >= 0; negative powers are normal."""
        if exponent <= 1:
            return None
        whole, left = divmod(exponent, 2)
        return self.argument ** (2 * whole) * ring.power(number, left)

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """p p' / |p|, but where p is zero."""
        return ring.power(number, -1) * self.argument * self.argument.derivative(variable)

    def value(self, at: Values) -> Value | None:
        """Its value."""
        return abs(at(self.argument))

    def __str__(self) -> str:
        return f"|{self.argument.text(3)}|"


@dataclass(frozen=True)
class Abbreviation(Function):
    """A long polynomial under a name: equal ones are the same, and products with it are not multiplied out."""

    meaning: Polynomial

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """The polynomial."""
        return (self.meaning,)

    @functools.cached_property
    def positive(self) -> bool:
        """True for a sum of positive terms."""
        generators = self.meaning.ring.generators
        return all(
            a > 0 and all(e % 2 == 0 or is_positive(generators[g]) for g, e in factors)
            for factors, a in self.meaning.terms()
        )

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """The derivative of the polynomial."""
        del ring, number
        return self.meaning.derivative(variable)

    def value(self, at: Values) -> Value | None:
        """Its value."""
        return at(self.meaning)

    def __str__(self) -> str:
        return f"({self.meaning.text(2)})"


def shortened(p: Polynomial, longest: int, random: Callable[[int], bool], whole: bool = True) -> Polynomial:
    """The same polynomial in draws, with names for their factors that are long.

    Args:
        p: to shorten.
        longest: terms from which on a polynomial has a name; that of more than `MOST_FACTORS` factors has one too.
        random: whether a generator is a draw, or a function of draws.
        whole: if it is still long it has a name itself, which is then a function of the draws.
    """
    ring = p.ring
    if any(len(ring.factors(m)) > MOST_FACTORS for m in p.numerators):
        p = ring.sum(_named(ring, factors, random).scaled(value) for factors, value in p.terms())
    if len(p) <= longest:
        return p
    is_random = {number: random(number) for number in p.numbers()}
    parts: dict[Monomial, list[Polynomial]] = {}
    for factors, value in p.terms():
        outer = tuple(f for f in factors if is_random[f[0]])
        inner = tuple(f for f in factors if not is_random[f[0]])
        parts.setdefault(outer, []).append(ring.monomial(inner, value))
    terms = []
    for outer, factor in parts.items():
        total = ring.sum(factor)
        terms.append(ring.monomial(outer) * (total if len(total) <= longest else ring.generator(Abbreviation(total))))
    short = ring.sum(terms)
    return short if len(short) <= longest or not whole else ring.generator(Abbreviation(p))


def _named(ring: Ring, factors: Monomial, random: Callable[[int], bool]) -> Polynomial:
    """A monomial, with a name for what is no draw in it if that is long."""
    inner = tuple(f for f in factors if not random(f[0]))
    if len(inner) <= MOST_FACTORS:
        return ring.monomial(factors)
    outer = ring.monomial(tuple(f for f in factors if random(f[0])))
    return outer * ring.generator(Abbreviation(ring.monomial(inner)))


def opened(p: Polynomial, numbers: frozenset[int]) -> Polynomial:
    """The same polynomial without names (`Abbreviation`) for polynomials that depend on some generators."""
    ring = p.ring
    for number in sorted(p.numbers(), reverse=True):
        generator = ring.generators[number]
        if isinstance(generator, Abbreviation) and numbers & ring.atoms(number):
            return opened(ring.sum(q * generator.meaning**k for k, q in by_power(p, number).items()), numbers)
    return p


def by_power(p: Polynomial, number: int) -> dict[int, Polynomial]:
    """p as a polynomial in one generator: exponent -> coefficient."""
    parts: dict[int, list[Polynomial]] = {}
    for factors, value in p.terms():
        rest = p.ring.monomial(tuple(f for f in factors if f[0] != number), value)
        parts.setdefault(dict(factors).get(number, 0), []).append(rest)
    p.ring.spend(len(p.numerators))  # sorting takes time too, and no product may follow
    return {exponent: p.ring.sum(terms) for exponent, terms in parts.items()}


def positive(value: Value) -> Value:
    """A value that has to be positive. Raises NotReal if it is not."""
    if not value > 0:
        raise NotReal
    return value


def is_positive(generator: Generator) -> bool:
    """True for generators that are positive wherever they are real."""
    positive = isinstance(generator, Root | HalfPower | InverseRoot | RationalPower | Absolute)
    return positive or getattr(generator, "positive", False) or getattr(generator, "name", "") in ("exp", "logistic")


def absolute(p: Polynomial) -> Polynomial:
    """|p|: of a number as it is, else a function with a leading coefficient of +-1 inside; |p| = |-p|."""
    if (value := p.rational) is not None:
        return p.ring.constant(abs(value))
    scale = p.leading()
    return p.ring.generator(Absolute(p.scaled(1 / scale))).scaled(abs(scale))


def signum(p: Polynomial) -> Polynomial:
    """p / |p|, which is the sign of p but where p is zero."""
    return p * power(absolute(p), -1)


def square_root(ring: Ring, value: Fraction) -> Polynomial:
    """The positive square root of a rational number, as a rational times roots of primes.

    Raises:
        Unreadable: if the number is negative.
    """
    if value < 0:
        raise Unreadable("the square root of a negative constant")
    left, outside = value.numerator * value.denominator, Fraction(1, value.denominator)
    result, factor = ring.one, 2
    while factor * factor <= left and factor < 3000:
        while left % (factor * factor) == 0:
            left, outside = left // (factor * factor), outside * factor
        if left % factor == 0:
            result, left = result * ring.generator(Root(factor)), left // factor
        factor += 1
    whole = math.isqrt(left)
    return (
        result.scaled(outside * whole)
        if whole * whole == left
        else (result * ring.generator(Root(left))).scaled(outside)
    )


def power(p: Polynomial, exponent: Fraction | int) -> Polynomial:
    """p^exponent: Laurent monomials stay monomials, other bases become opaque.

    Raises:
        Unreadable: where p is zero and the exponent is negative.
    """
    exponent = Fraction(exponent)
    if exponent.denominator == 1 and exponent >= 0:
        return p ** int(exponent)
    if not p:
        if exponent > 0:
            return p
        raise Unreadable("a division by zero")
    if len(p) == 1 and exponent.denominator <= 2:
        result = _monomial_power(p, exponent)
        if result is not None:
            return result
    return _opaque_power(p, exponent)


def _monomial_power(p: Polynomial, exponent: Fraction) -> Polynomial | None:
    """A power of one term with a whole or half exponent; None if its root is no monomial."""
    ring = p.ring
    ((factors, coefficient),) = p.terms()
    whole = exponent.denominator == 1
    # sqrt(g^2) is |g|: a root is taken factor by factor only where each of them has to be positive anyhow.
    if not whole and (coefficient < 0 or not all(e % 2 or is_positive(ring.generators[g]) for g, e in factors)):
        return None
    result = ring.constant(coefficient ** int(exponent)) if whole else _root_power(ring, coefficient, exponent)
    for number, inner in factors:
        total = inner * exponent
        if total.denominator == 1:
            result = result * ring.power(number, int(total))
        elif isinstance(ring.generators[number], Root | HalfPower | InverseRoot):
            base = ring.power(number, 1)
            quarter = ring.generator(RationalPower(base, HALF))
            result = result * ring.power(number, int(total - HALF)) * quarter
        else:
            half = ring.generator(HalfPower(ring.power(number, 1)))
            result = result * ring.power(number, int(total + HALF)) * half
    return result


def _root_power(ring: Ring, value: Fraction, exponent: Fraction) -> Polynomial:
    """value^exponent for a positive rational and a half exponent."""
    return square_root(ring, value if exponent > 0 else 1 / value) ** int(2 * abs(exponent))


def _opaque_power(p: Polynomial, exponent: Fraction) -> Polynomial:
    """A power as an opaque generator; of a root and an inverse the base has a leading coefficient of +-1."""
    ring = p.ring
    if exponent.denominator > 2:
        whole = math.floor(exponent)
        return power(p, whole) * ring.generator(RationalPower(p, exponent - whole))
    size = abs(p.leading())
    base = p.scaled(1 / size)
    if exponent.denominator == 1:
        return ring.generator(InverseRoot(base), int(-2 * exponent)).scaled(size ** int(exponent))
    scale = ring.one if size == 1 else power(ring.constant(size), exponent)
    if exponent < 0:
        return scale * ring.generator(InverseRoot(base), int(-2 * exponent))
    return scale * base ** int(exponent + HALF) * ring.generator(InverseRoot(base))


def exponential(p: Polynomial) -> Polynomial:
    """exp(p), a product over the terms of p; exp(k log q) = q^k."""
    ring = p.ring
    result = ring.one
    for factors, value in p.terms():
        generator = ring.generators[factors[0][0]] if len(factors) == 1 and factors[0][1] == 1 else None
        if isinstance(generator, Applied) and generator.name == "log":
            result = result * power(generator.argument, value)
        elif value.denominator <= 2:  # one generator for exp(m), exp(-m), exp(m / 2), so that they are related
            result = result * power(ring.generator(Applied("exp", ring.monomial(factors))), value)
        else:
            argument = ring.monomial(factors, Fraction(1, value.denominator))
            result = result * ring.generator(Applied("exp", argument), value.numerator)
    return result


def derivatives(name: str, a: Polynomial, order: int) -> list[Polynomial]:
    """f(a), f'(a), .., f^(order)(a) of a function by name.

    Raises:
        Unreadable: if the function is not known here.
    """
    rule = _RULES.get(name)
    if rule is None:
        raise Unreadable(f"the function {name}")
    return rule(name, a, order)


def _of_exp(name: str, a: Polynomial, order: int) -> list[Polynomial]:
    del name
    return [exponential(a)] * (order + 1)


def _of_log(name: str, a: Polynomial, order: int) -> list[Polynomial]:
    value = a.ring.zero if a.rational == 1 else a.ring.generator(Applied(name, a))
    factor = lambda k: Fraction((-1) ** (k - 1) * math.factorial(k - 1))
    return [value, *(power(a, -k).scaled(factor(k)) for k in range(1, order + 1))]


def _of_circle(name: str, a: Polynomial, order: int) -> list[Polynomial]:
    ring = a.ring
    sine = ring.generator(Applied("sin", a)) if a else ring.zero
    cosine = ring.generator(Applied("cos", a)) if a else ring.one
    cycle = [sine, cosine, -sine, -cosine]
    return [cycle[(k + (name == "cos")) % 4] for k in range(order + 1)]


def _autonomous(rule: Mapping[int, Fraction], at_zero: Fraction) -> "_Rule":
    """The rule of a function with f' = sum_k rule[k] f^k."""

    def of(name: str, a: Polynomial, order: int) -> list[Polynomial]:
        value = a.ring.generator(Applied(name, a)) if a else a.ring.constant(at_zero)
        outer, found = {1: Fraction(1)}, []
        for _ in range(order + 1):
            found.append(a.ring.sum((value**k).scaled(c) for k, c in outer.items()))
            following: dict[int, Fraction] = {}
            for k, c in outer.items():
                for j, e in rule.items():
                    if k:
                        following[k - 1 + j] = following.get(k - 1 + j, Fraction(0)) + k * c * e
            outer = following
        return found

    return of


@dataclass(frozen=True)
class _Symbol(Free):
    """The argument of a function whose derivatives are found before the argument is put in."""

    def __str__(self) -> str:
        return "t"


def _from_derivative(first: Callable[[Polynomial], Polynomial]) -> "_Rule":
    """The rule of a function with f(0) = 0 whose derivative is a function that is known."""

    def of(name: str, a: Polynomial, order: int) -> list[Polynomial]:
        ring = a.ring
        found = [ring.generator(Applied(name, a)) if a else ring.zero]
        symbol = ring.number(_Symbol())
        slope = first(ring.power(symbol, 1))
        for _ in range(order):
            found.append(substituted(slope, symbol, a))
            slope = slope.derivative(symbol)
        return found

    return of


def substituted(p: Polynomial, symbol: int, value: Polynomial) -> Polynomial:
    """p with a generator replaced by a polynomial, inside of opaque functions too."""
    return all_substituted(p, {symbol: value})


def all_substituted(p: Polynomial, values: Mapping[int, Polynomial]) -> Polynomial:
    """p with several generators replaced by polynomials at once, inside of opaque functions too."""
    return _Substitution(p.ring, values)(p)


class _Substitution:
    """A substitution, which keeps what it has made of each power of a generator."""

    def __init__(self, ring: Ring, values: Mapping[int, Polynomial]) -> None:
        self._ring, self._values, self._symbols = ring, values, frozenset(values)
        self._known: dict[tuple[int, int], Polynomial] = {}

    def __call__(self, p: Polynomial) -> Polynomial:
        terms = []
        for factors, coefficient in p.terms():
            term = self._ring.constant(coefficient)
            for factor in factors:
                if factor not in self._known:
                    self._known[factor] = self._power(*factor)
                term = term * self._known[factor]
            terms.append(term)
        return self._ring.sum(terms)

    def _power(self, number: int, exponent: int) -> Polynomial:
        if number in self._values:
            return power(self._values[number], exponent)
        generator = self._ring.generators[number]
        if not self._symbols & self._ring.atoms(number):
            return self._ring.power(number, exponent)
        match generator:
            case InverseRoot(base) | HalfPower(base):
                return power(self(base), Fraction(-exponent, 2))
            case RationalPower(base, inner):
                return power(self(base), inner * exponent)
            case Applied(name, argument):
                return power(derivatives(name, self(argument), 0)[0], exponent)
            case Absolute(argument):
                return power(absolute(self(argument)), exponent)
            case Abbreviation(meaning):
                return power(self(meaning), exponent)
            case _:
                return self._ring.power(number, exponent)


def _slope_of_atan(t: Polynomial) -> Polynomial:
    return power(t * t + t.ring.one, -1)


def _slope_of_erf(t: Polynomial) -> Polynomial:
    """2 exp(-t^2) / sqrt(pi)."""
    return (exponential(-(t * t)) * power(t.ring.generator(Constant("pi")), -HALF)).scaled(2)


_Rule = Callable[[str, Polynomial, int], list[Polynomial]]
_RULES: dict[str, _Rule] = {
    "exp": _of_exp,
    "log": _of_log,
    "sin": _of_circle,
    "cos": _of_circle,
    "tanh": _autonomous({0: Fraction(1), 2: Fraction(-1)}, Fraction(0)),
    "logistic": _autonomous({1: Fraction(1), 2: Fraction(-1)}, HALF),
    "atan": _from_derivative(_slope_of_atan),
    "erf": _from_derivative(_slope_of_erf),
}
