"""Truncated Laurent series in s = sqrt(h) with coefficients in the ring, each with its own precision.

    a = sum_{k < p} a_k s^k + O(s^p)

The precision p is part of the value: a division by s lowers it, a product keeps what both factors allow. At finite h a
step is read with the same code: there h is a generator of the ring, all series are constant and nothing is truncated.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.functions import derivatives, power, shortened
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring

EXACT = 10**6
"""Precision of a series that is known completely."""


class Space:
    """Series up to a power of s over one ring.

    Args:
        ring: of the coefficients.
        order: the highest power of s that is kept.
        longest: number of terms from which on a coefficient is abbreviated (`functions.Abbreviation`); None: never.

    Attributes:
        exponentials: that were computed, which are positive.
        shares: values of the logistic function that were computed, which lie between 0 and 1 at every h.
    """

    def __init__(self, ring: Ring, order: int, longest: int | None = None) -> None:
        self.ring, self.order, self.longest = ring, order, longest
        self.zero = Series(self, {})
        self.one = Series(self, {0: ring.one})
        self.exponentials: list[Series] = []
        self.shares: list[Series] = []
        self._random: dict[int, bool] = {}

    def constant(self, value: Fraction | int) -> "Series":
        """A rational number as a series."""
        return Series(self, {0: self.ring.constant(value)})

    def lift(self, p: Polynomial) -> "Series":
        """A polynomial as a series."""
        return Series(self, {0: p})

    def shortened(self, p: Polynomial) -> Polynomial:
        """The polynomial itself, or names in it if it is long (`functions.shortened`)."""
        return p if self.longest is None else shortened(p, self.longest, self._is_random)

    def _is_random(self, number: int) -> bool:
        known = self._random.get(number)
        if known is None:
            draws = (self.ring.generators[inner].kind == "draw" for inner in self.ring.atoms(number))
            known = self._random[number] = any(draws)
        return known

    def power_of_step(self, k: int) -> "Series":
        """s^k."""
        return Series(self, {k: self.ring.one})


class Series:
    """A truncated series; see the module.

    Args:
        space: of which it is an element.
        coefficients: power of s -> polynomial; those that are zero or beyond the precision are dropped.
        precision: p, the first power that is not known.
    """

    __slots__ = ("coefficients", "precision", "space")

    def __init__(self, space: Space, coefficients: Mapping[int, Polynomial], precision: int = EXACT) -> None:
        if any(k > space.order and a for k, a in coefficients.items()):
            precision = min(precision, space.order + 1)
        self.space, self.precision = space, precision
        self.coefficients = {k: space.shortened(a) for k, a in coefficients.items() if a and k < precision}

    def __bool__(self) -> bool:
        """True unless it is zero as far as it is known."""
        return bool(self.coefficients)

    @property
    def is_zero(self) -> bool:
        """True if it is zero, and known completely."""
        return not self.coefficients and self.precision >= EXACT

    @property
    def valuation(self) -> int:
        """The lowest power of s with a coefficient other than zero; the precision if there is none."""
        return min(self.coefficients, default=self.precision)

    @property
    def leading(self) -> Polynomial:
        """The coefficient of the lowest power. Raises PrecisionLost if no term is left of what is not known."""
        if not self.coefficients:
            if self.precision < EXACT:
                raise PrecisionLost
            return self.space.ring.zero
        return self.coefficients[self.valuation]

    @property
    def constant_term(self) -> Polynomial:
        """The coefficient of s^0."""
        return self.coefficient(0)

    @property
    def is_constant(self) -> bool:
        """True if it is a polynomial without s."""
        return set(self.coefficients) <= {0} and self.precision >= EXACT

    def coefficient(self, k: int) -> Polynomial:
        """The coefficient of s^k. Raises PrecisionLost if it is not known."""
        if k >= self.precision:
            raise PrecisionLost
        return self.coefficients.get(k, self.space.ring.zero)

    def polynomials(self) -> list[Polynomial]:
        """All coefficients that are known."""
        return list(self.coefficients.values())

    def __add__(self, other: "Series") -> "Series":
        total = dict(self.coefficients)
        for k, b in other.coefficients.items():
            total[k] = total[k] + b if k in total else b
        return Series(self.space, total, min(self.precision, other.precision))

    def __neg__(self) -> "Series":
        return Series(self.space, {k: -a for k, a in self.coefficients.items()}, self.precision)

    def __sub__(self, other: "Series") -> "Series":
        return self + -other

    def __mul__(self, other: "Series") -> "Series":
        if self.is_zero or other.is_zero:
            return self.space.zero
        precision = min(self.precision + other.valuation, other.precision + self.valuation, EXACT)
        total: dict[int, Polynomial] = {}
        for i, a in self.coefficients.items():
            for j, b in other.coefficients.items():
                if i + j >= precision:
                    continue
                if i + j > self.space.order:
                    precision = self.space.order + 1
                    continue
                total[i + j] = total[i + j] + a * b if i + j in total else a * b
        return Series(self.space, total, precision)

    def scaled(self, factor: Fraction | int) -> "Series":
        """This series times a rational number."""
        return Series(self.space, {k: a.scaled(factor) for k, a in self.coefficients.items()}, self.precision)

    def shifted(self, k: int) -> "Series":
        """This series times s^k."""
        precision = self.precision + k if self.precision < EXACT else EXACT
        return Series(self.space, {i + k: a for i, a in self.coefficients.items()}, precision)

    def without_constant(self) -> "Series":
        """This series without its term s^0."""
        return Series(self.space, {k: a for k, a in self.coefficients.items() if k}, self.precision)

    def same(self, other: "Series") -> bool:
        """True if both have the same terms, as far as they are known."""
        return not (self - other).coefficients

    def text(self) -> str:
        """This series for readers, in powers of h."""
        parts = [f"({p.text(3)})" + (f" h^{Fraction(k, 2)}" if k else "") for k, p in sorted(self.coefficients.items())]
        return " + ".join(parts) or "0"

    def __repr__(self) -> str:
        return f"Series({ {k: a.text(3) for k, a in sorted(self.coefficients.items())} }, O(s^{self.precision}))"


def composed(taylor: Sequence[Polynomial], delta: Series) -> Series:
    """sum_k taylor[k] delta^k / k! for a series delta without a constant term, up to the order of the space."""
    space = delta.space
    if delta.is_zero:
        return space.lift(taylor[0])
    total, factor = space.lift(taylor[0]), space.one
    for k in range(1, len(taylor)):
        factor = factor * delta
        if not factor:
            break
        total = total + factor * space.lift(taylor[k].scaled(Fraction(1, math.factorial(k))))
    # what comes after the last term is O(s^(order + 1)), also where all terms that were kept are exact
    return Series(space, total.coefficients, min(total.precision, delta.precision, space.order + 1))


def apply(name: str, a: Series) -> Series:
    """A function by name of a series, by Taylor's formula around its constant term.

    Raises:
        Unreadable: if the argument grows as h -> 0, or the function is not known.
    """
    if a.valuation < 0:
        raise Unreadable(f"{name} of something that grows as h -> 0")
    delta = a.without_constant()
    order = a.space.order if delta or delta.precision < EXACT else 0
    return composed(derivatives(name, a.coefficient(0) if a.precision > 0 else a.leading, order), delta)


def raised(a: Series, exponent: Fraction | int) -> Series:
    """a^exponent, by Newton's series around the leading term.

    Raises:
        PrecisionLost: if no term of `a` is known.
        Unreadable: for 1/0, or a power of s that is no multiple of 1/2 in h.
    """
    exponent, space = Fraction(exponent), a.space
    if exponent.denominator == 1 and exponent >= 0:
        result = space.one
        for _ in range(int(exponent)):
            result = result * a
        return result
    lead, lowest = a.leading, a.valuation
    if not lead:
        if exponent > 0:
            return a
        raise Unreadable("a division by zero")
    shift = lowest * exponent
    if shift.denominator != 1:
        raise Unreadable(f"s^({shift}), no power of sqrt(h)")
    head = space.lift(power(lead, exponent)).shifted(int(shift))
    rest = Series(space, {k: c for k, c in a.coefficients.items() if k != lowest}, a.precision)
    if rest.is_zero:
        return head
    delta = (rest * space.lift(power(lead, -1))).shifted(-lowest)
    taylor, factor = [], Fraction(1)
    for k in range(space.order + 3):
        taylor.append(space.ring.constant(factor))
        factor *= exponent - k
    return composed(taylor, delta) * head
