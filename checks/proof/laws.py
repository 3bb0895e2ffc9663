"""The laws of random draws, by their moments and densities.

Moments are those of the integer order that a polynomial in draws asks for: exact rationals where there is a formula,
else found by quadrature (johnson1994continuous has the formulas).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
from mpmath import mpf

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.ring import Value

QUADRATURE_DIGITS = 25


class Law:
    """The law of one real draw; `moment` may be exact or rounded to 40 digits."""

    centre: ClassVar[Fraction | None] = None
    """Of a law that is symmetric."""
    positive: ClassVar[bool] = False
    """Whether it is one of the positive half line."""

    @property
    def parameters(self) -> tuple[Fraction, ...]:
        """The numbers that the law depends on, in order."""
        return tuple(vars(self).values())

    def moment(self, order: int) -> Fraction:
        """E X^order, by quadrature unless there is a formula."""
        with mpmath.workdps(QUADRATURE_DIGITS):
            return rounded(mpmath.quad(lambda x: x**order * self.density(x), self.support))

    def density(self, x: Value) -> Value:
        """The density at a point. Raises Unreadable for a law without one."""
        del x
        raise Unreadable(f"a function of a draw of the law {self}")

    @property
    def support(self) -> list[Value]:
        """Points between which the density is smooth, all mass to 25 digits between the first and the last."""
        return [mpf(-1), mpf(1)]

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True)
class Normal(Law):
    """N(0, 1)."""

    centre = Fraction(0)

    def moment(self, order: int) -> Fraction:
        """(order - 1)!! for even orders."""
        return Fraction(0) if order % 2 else Fraction(math.prod(range(1, order, 2)))

    def density(self, x: Value) -> Value:
        """The density at a point."""
        return mpmath.npdf(x)

    @property
    def support(self) -> list[Value]:
        """Twelve standard deviations."""
        return [mpf(v) for v in (-12, -4, 0, 4, 12)]


@dataclass(frozen=True)
class Uniform(Law):
    """The uniform law on [0, 1)."""

    positive = True
    centre = Fraction(1, 2)

    def moment(self, order: int) -> Fraction:
        """1 / (order + 1)."""
        return Fraction(1, order + 1)

    def density(self, x: Value) -> Value:
        """One."""
        del x
        return mpf(1)

    @property
    def support(self) -> list[Value]:
        """[0, 1]."""
        return [mpf(0), mpf(1) / 4, mpf(1) / 2, mpf(1)]


@dataclass(frozen=True)
class Rademacher(Law):
    """+-1 with probability 1/2 each."""

    centre = Fraction(0)

    def moment(self, order: int) -> Fraction:
        """One for even orders."""
        return Fraction(1 - order % 2)


@dataclass(frozen=True)
class Exponential(Law):
    """The exponential law of mean 1."""

    positive = True

    def moment(self, order: int) -> Fraction:
        """order!."""
        return Fraction(math.factorial(order))

    def density(self, x: Value) -> Value:
        """exp(-x)."""
        return mpmath.exp(-x)

    @property
    def support(self) -> list[Value]:
        """The positive half line, cut at 120."""
        return [mpf(v) for v in (0, 2, 20, 120)]


@dataclass(frozen=True)
class Laplace(Law):
    """The density exp(-|x|) / 2."""

    centre = Fraction(0)

    def moment(self, order: int) -> Fraction:
        """order! for even orders."""
        return Fraction(0) if order % 2 else Fraction(math.factorial(order))

    def density(self, x: Value) -> Value:
        """exp(-|x|) / 2."""
        return mpmath.exp(-abs(x)) / 2

    @property
    def support(self) -> list[Value]:
        """The line, cut at 100."""
        return [mpf(v) for v in (-100, -10, 0, 10, 100)]


@dataclass(frozen=True)
class StudentT(Law):
    """Student's t with `freedom` degrees of freedom."""

    freedom: Fraction

    centre = Fraction(0)

    def moment(self, order: int) -> Fraction:
        """nu^k (2 k - 1)!! / ((nu - 2) (nu - 4) .. (nu - 2 k)) for order = 2 k."""
        if order >= self.freedom:
            raise Unreadable(
                f"moment {order} of Student's t with {self.freedom} degrees of freedom, which does not exist"
            )
        if order % 2:
            return Fraction(0)
        pairs = range(1, order // 2 + 1)
        below = math.prod((self.freedom - 2 * i for i in pairs), start=Fraction(1))
        return math.prod(range(1, order, 2)) * self.freedom ** (order // 2) / below


@dataclass(frozen=True)
class TruncatedNormal(Law):
    """N(0, 1) between two bounds."""

    low: Fraction
    high: Fraction

    def density(self, x: Value) -> Value:
        """The density at a point."""
        low, high = self.support[0], self.support[-1]
        return mpmath.npdf(x) / (mpmath.ncdf(high) - mpmath.ncdf(low))

    @property
    def support(self) -> list[Value]:
        """Between the bounds."""
        low, high = _number(self.low), _number(self.high)
        return [low, (low + high) / 2, high]


@dataclass(frozen=True)
class Gumbel(Law):
    """The standard law of Gumbel."""

    def density(self, x: Value) -> Value:
        """exp(-x - exp(-x))."""
        return mpmath.exp(-x - mpmath.exp(-x))

    @property
    def support(self) -> list[Value]:
        """The line, cut where less than 1e-25 is left."""
        return [mpf(v) for v in (-6, 0, 10, 100)]


@dataclass(frozen=True)
class Gamma(Law):
    """The gamma law of a shape, and scale 1."""

    positive = True

    shape: Fraction

    def moment(self, order: int) -> Fraction:
        """a (a + 1) .. (a + order - 1)."""
        return math.prod((self.shape + i for i in range(order)), start=Fraction(1))

    def density(self, x: Value) -> Value:
        """x^(a - 1) exp(-x) / Gamma(a)."""
        a = _number(self.shape)
        return x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)

    @property
    def support(self) -> list[Value]:
        """The positive half line, cut where less than 1e-25 is left."""
        a = _number(self.shape)
        return [mpf(0), a / 2, a, a + 10 * mpmath.sqrt(a) + 5, a + 20 * mpmath.sqrt(a) + 120]


@dataclass(frozen=True)
class LogGamma(Law):
    """The law of the logarithm of a gamma draw."""

    shape: Fraction

    def density(self, x: Value) -> Value:
        """exp(a x - exp(x)) / Gamma(a)."""
        a = _number(self.shape)
        return mpmath.exp(a * x - mpmath.exp(x)) / mpmath.gamma(a)

    @property
    def support(self) -> list[Value]:
        """The line, cut where less than 1e-25 is left."""
        a = _number(self.shape)
        return [-60 / a - 5, mpmath.log(a) - 3, mpmath.log(a), mpmath.log(a) + 3, mpmath.log(a + 120) + 2]


@dataclass(frozen=True)
class Beta(Law):
    """The beta law of two shapes."""

    positive = True

    first: Fraction
    second: Fraction

    def moment(self, order: int) -> Fraction:
        """The product of (a + i) / (a + b + i) below the order."""
        whole = self.first + self.second
        return math.prod(((self.first + i) / (whole + i) for i in range(order)), start=Fraction(1))

    def density(self, x: Value) -> Value:
        """x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
        a, b = _number(self.first), _number(self.second)
        return x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)

    @property
    def support(self) -> list[Value]:
        """[0, 1]."""
        return [mpf(0), mpf(1) / 2, mpf(1)]


@dataclass(frozen=True)
class ChiSquare(Law):
    """The chi-square law: twice a gamma draw of half the degrees of freedom."""

    positive = True

    freedom: Fraction

    def moment(self, order: int) -> Fraction:
        """2^order times that of the gamma law."""
        return 2**order * Gamma(self.freedom / 2).moment(order)

    def density(self, x: Value) -> Value:
        """Half the density of the gamma law at x / 2."""
        return Gamma(self.freedom / 2).density(x / 2) / 2

    @property
    def support(self) -> list[Value]:
        """That of the gamma law, doubled."""
        return [2 * v for v in Gamma(self.freedom / 2).support]


@dataclass(frozen=True)
class Logistic(Law):
    """The standard logistic law."""

    centre = Fraction(0)

    def density(self, x: Value) -> Value:
        """1 / (4 cosh(x / 2)^2)."""
        return 1 / (4 * mpmath.cosh(x / 2) ** 2)

    @property
    def support(self) -> list[Value]:
        """The line, cut at 100."""
        return [mpf(v) for v in (-100, -10, 0, 10, 100)]


@dataclass(frozen=True)
class GeneralizedNormal(Law):
    """The density proportional to exp(-|x|^p)."""

    power: Fraction

    centre = Fraction(0)

    def moment(self, order: int) -> Fraction:
        """Gamma((order + 1) / p) / Gamma(1 / p) for even orders."""
        if order % 2:
            return Fraction(0)
        with mpmath.workdps(QUADRATURE_DIGITS):
            p = _number(self.power)
            return rounded(mpmath.gamma((order + 1) / p) / mpmath.gamma(1 / p))

    def density(self, x: Value) -> Value:
        """p exp(-|x|^p) / (2 Gamma(1 / p))."""
        p = _number(self.power)
        return p * mpmath.exp(-(abs(x) ** p)) / (2 * mpmath.gamma(1 / p))

    @property
    def support(self) -> list[Value]:
        """The line, cut where less than 1e-25 is left."""
        end = mpf(80) ** (1 / _number(self.power))
        return [-end, -end / 8, mpf(0), end / 8, end]


@dataclass(frozen=True)
class Maxwell(Law):
    """The length of a standard normal vector of three coordinates."""

    positive = True

    def density(self, x: Value) -> Value:
        """sqrt(2 / pi) x^2 exp(-x^2 / 2)."""
        return mpmath.sqrt(2 / mpmath.pi) * x**2 * mpmath.exp(-(x**2) / 2)

    @property
    def support(self) -> list[Value]:
        """The positive half line, cut at 13."""
        return [mpf(v) for v in (0, 1, 4, 13)]


def _number(value: Fraction) -> Value:
    return mpf(value.numerator) / value.denominator


def rounded(value: Any) -> Fraction:
    """A rational for a number that quadrature found: a simple one if it is close to it, else 40 digits."""
    decimal = Fraction(int(mpmath.nint(mpf(value.real) * 10**40)), 10**40)
    simple = decimal.limit_denominator(1000)
    return simple if abs(decimal - simple) < Fraction(1, 10**18) else decimal
