"""SymPy expressions and mpmath values of polynomials of the ring: the oracles of these tests."""

from collections.abc import Mapping

import mpmath
import sympy as sp

from sgmcmc_verification.checks.proof.draws import Draw
from sgmcmc_verification.checks.proof.functions import Applied, Constant, HalfPower, InverseRoot, RationalPower, Root
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet, StepRoot

S = sp.Symbol("s", positive=True)


def to_sympy(p) -> sp.Expr:
    """A polynomial as a SymPy expression; coordinates are symbols by name, derivatives of U at them functions."""
    return sp.Add(*(_rational(a) * sp.Mul(*(generator(p.ring.generators[g]) ** e for g, e in f)) for f, a in p.terms()))


def _rational(q):
    return sp.Rational(q.numerator, q.denominator)


def generator(g) -> sp.Expr:
    match g:
        case Coordinate(name, _, positive):
            return sp.Symbol(name, positive=True) if positive else sp.Symbol(name, real=True)
        case Draw():
            return sp.Symbol(str(g), real=True)
        case StepRoot():
            return S
        case Root(radicand):
            return sp.sqrt(radicand)
        case Constant("pi"):
            return sp.pi
        case HalfPower(base) | InverseRoot(base):
            return 1 / sp.sqrt(to_sympy(base))
        case RationalPower(base, exponent):
            return to_sympy(base) ** _rational(exponent)
        case Applied("logistic", argument):
            return 1 / (1 + sp.exp(-to_sympy(argument)))
        case Applied(name, argument):
            return getattr(sp, name)(to_sympy(argument))
        case Jet(name, orders, point):
            xs = [to_sympy(p) for p in point]
            f = sp.Function(name)(*xs)
            for x, k in zip(xs, orders, strict=True):
                f = f.diff(x, k) if k else f
            return f
    raise TypeError(g)


class SmoothPotential:
    """U(x) = sum (0.3 x_i^4 + 0.5 x_i^2 + 0.2 sin x_i) + 0.4 x_1 x_d^2 + 1, with all its derivatives."""

    def __init__(self, dimension: int) -> None:
        self.x = sp.symbols(f"v0:{dimension}", real=True)
        x = self.x
        terms = [sp.Rational(3, 10) * v**4 + v**2 / 2 + sp.sin(v) / 5 for v in x]
        self.expression = sum(terms) + sp.Rational(2, 5) * x[0] * x[-1] ** 2 + 1
        self._known: dict[tuple[int, ...], object] = {}

    def derivative(self, orders: tuple[int, ...], point) -> mpmath.mpf:
        if orders not in self._known:
            f = self.expression
            for v, k in zip(self.x, orders, strict=True):
                f = sp.diff(f, v, k) if k else f
            self._known[orders] = sp.lambdify(self.x, f, modules="mpmath")
        return self._known[orders](*point)

    def value(self, values: Mapping[int, mpmath.mpf], ring):
        """An evaluator of polynomials of `ring` in which the derivatives of U are those of this potential."""
        from sgmcmc_verification.checks.proof.draws import evaluator

        def free(number):
            g = ring.generators[number]
            if not isinstance(g, Jet):
                raise KeyError(str(g))
            return self.derivative(g.orders, [of(p) for p in g.point])

        of = evaluator(ring, values, free)
        return of
