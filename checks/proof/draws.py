"""Random draws by the moments of their laws, and the expectation of a polynomial in them.

A draw is named by the *history of its key*: the path of splits and folds from the key of a step. Two draws of one key
are then the same generators, whatever the program calls them, and the expectation knows it without being told.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import mpmath

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.laws import QUADRATURE_DIGITS, Law, rounded
from sgmcmc_verification.checks.proof.ring import EVALUATION, Free, Kind, Monomial, Polynomial, Ring, Value


@dataclass(frozen=True)
class History:
    """The history of a random key: a root by name or by its bits, and the children taken since.

    The i-th key of a split and a fold by i are the same key in JAX, for any number of keys of the split.
    """

    root: str | tuple[int, ...]
    children: tuple[int | str, ...] = ()

    def child(self, index: int | str) -> "History":
        """A key that was split off or folded."""
        return History(self.root, (*self.children, index))

    @property
    def is_constant(self) -> bool:
        """True for a key that is written in the program: every step draws the same."""
        return not isinstance(self.root, str)


@dataclass(frozen=True)
class Draw(Free):
    """The draw of a law at a place in the array that a key made."""

    law: Law
    history: History
    place: int

    @property
    def kind(self) -> Kind:
        """A draw."""
        return "draw"

    @property
    def positive(self) -> bool:
        """True for a law on the positive half line."""
        return self.law.positive

    def __str__(self) -> str:
        name = {"Normal": "xi", "Uniform": "u"}.get(str(self.law), str(self.law).lower())
        path = "".join(str(child) for child in self.history.children)
        return f"{name}{path}_{self.place}"


@dataclass(frozen=True)
class DrawFunction(Free):
    """A function of draws alone that is not smooth, such as |xi|; it enters by its moments.

    Attributes:
        name: of the function; with the arguments it says which function it is.
        inputs: its arguments.
        function: values of the arguments -> value.
        breaks: values of the draw at which it is not smooth.
    """

    name: str
    inputs: tuple[Polynomial, ...]
    function: Callable[[Sequence[Value]], Value] = field(compare=False)
    breaks: tuple[Value, ...] = ()

    @property
    def kind(self) -> Kind:
        """A function."""
        return "function"

    @property
    def arguments(self) -> tuple[Polynomial, ...]:
        """Its arguments."""
        return self.inputs

    def value(self, at: Callable[[Polynomial], Value]) -> Value | None:
        """Its value."""
        return self.function([at(p) for p in self.inputs])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.text(3) for p in self.inputs)})"


def draws_in(p: Polynomial) -> frozenset[int]:
    """The draws in a polynomial and in the arguments of its functions."""
    return frozenset(number for number in p.atoms() if p.ring.generators[number].kind == "draw")


class Expectation:
    """E p over all draws, which are independent; what was integrated is kept for as long as this object lives."""

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self._joint: dict[Monomial, Fraction] = {}
        self._draws: dict[int, frozenset[int]] = {}

    def __call__(self, p: Polynomial) -> Polynomial:
        """The expectation of a polynomial.

        Raises:
            Unreadable: for a function of draws and of the state, and for moments that do not exist.
        """
        if not any(self.draws(number) for number in p.numbers()):
            return p
        return self.ring.sum(self._term(factors, coefficient) for factors, coefficient in p.terms())

    def draws(self, number: int) -> frozenset[int]:
        """The draws that a generator depends on."""
        known = self._draws.get(number)
        if known is None:
            kinds = self.ring.generators
            known = self._draws[number] = frozenset(n for n in self.ring.atoms(number) if kinds[n].kind == "draw")
        return known

    def _term(self, factors: Monomial, coefficient: Fraction) -> Polynomial:
        kept: list[tuple[int, int]] = []
        random: list[tuple[int, int]] = []
        for number, exponent in factors:
            if not self.draws(number):
                kept.append((number, exponent))
            elif any(self.ring.generators[n].kind == "state" for n in self.ring.atoms(number)):
                raise Unreadable(f"a function of draws and of the state, {self.ring.generators[number]}")
            else:
                random.append((number, exponent))
        while random:
            group = self._connected(random)
            random = [factor for factor in random if factor not in group]
            coefficient *= self._moment(tuple(group))
            if not coefficient:
                return self.ring.zero
        return self.ring.monomial(tuple(kept), coefficient)

    def _connected(self, factors: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The factors that share draws with the first, directly or through others."""
        reached = set(self.draws(factors[0][0]))
        while True:
            group = [factor for factor in factors if reached & self.draws(factor[0])]
            grown = reached.union(*(self.draws(number) for number, _ in group))
            if grown == reached:
                return group
            reached = set(grown)

    def _moment(self, group: Monomial) -> Fraction:
        """The expectation of a product of functions of draws that hang together."""
        (number, exponent), *others = group
        generator = self.ring.generators[number]
        if not others and isinstance(generator, Draw):
            if exponent < 0:
                raise Unreadable("a negative power of a draw")
            return generator.law.moment(exponent)
        known = self._joint.get(group)
        if known is None:
            known = self._joint[group] = self._integrated(group)
        return known

    def _integrated(self, group: Monomial) -> Fraction:
        draws = sorted(frozenset().union(*(self.draws(number) for number, _ in group)))
        if len(draws) > 1:
            raise Unreadable("a function of several draws that is no product")
        generator = self.ring.generators[draws[0]]
        assert isinstance(generator, Draw)
        breaks = [b for n, _ in group for b in getattr(self.ring.generators[n], "breaks", ())]
        with mpmath.workdps(QUADRATURE_DIGITS):

            def integrand(x: Value) -> Value:
                value = evaluator(self.ring, {draws[0]: x})
                product = mpmath.fprod(value(self.ring.power(n, 1)) ** e for n, e in group)
                return product * generator.law.density(x)

            return rounded(mpmath.quad(integrand, sorted({*generator.law.support, *breaks})))


def evaluator(
    ring: Ring, values: Mapping[int, Value], free: Callable[[int], Value] | None = None
) -> Callable[[Polynomial], Value]:
    """The value of a polynomial where those of its free generators are given.

    Args:
        ring: of the polynomials.
        values: number of a generator -> its value.
        free: the value of a free generator that is not among them; default: there must be none.
    """
    known = dict(values)

    def of_generator(number: int) -> Value:
        if number not in known:
            value = ring.generators[number].value(of)
            if value is None:
                if free is None:
                    raise KeyError(str(ring.generators[number]))
                value = free(number)
            known[number] = value
        return known[number]

    def of(p: Polynomial) -> Value:
        ring.spend(EVALUATION * len(p))
        parts = (a * mpmath.fprod(of_generator(g) ** e for g, e in ring.factors(m)) for m, a in p.numerators.items())
        return mpmath.fsum(parts) / p.denominator

    return of


def in_floats(ring: Ring, free: Callable[[int], float]) -> Callable[[Polynomial], float]:
    """The values of polynomials in double precision, some twenty times as fast as those of `evaluator`.

    Raises:
        OverflowError: at a value of more than 1e308.
        ZeroDivisionError: at a pole.
    """
    known: dict[int, float] = {}

    def of_generator(number: int) -> float:
        if number not in known:
            value = ring.generators[number].value(of)
            known[number] = free(number) if value is None else float(value)
            if math.isinf(known[number]):
                raise OverflowError
        return known[number]

    def of(p: Polynomial) -> float:
        ring.spend(1 + len(p) // 8)
        total = 0.0
        for m, a in p.numerators.items():
            term = float(a)
            for g, e in ring.factors(m):
                term *= of_generator(g) ** e
            total += term
        return total / p.denominator

    return of
