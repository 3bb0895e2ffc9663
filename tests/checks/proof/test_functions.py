"""Opaque functions against mpmath: their values, their derivatives, the normal forms of powers."""

from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from checks.proof.draws import evaluator
from checks.proof.errors import Unreadable
from checks.proof.functions import derivatives, exponential, power, square_root, substituted
from checks.proof.potential import Coordinate
from checks.proof.ring import Ring
from tests.checks.proof.oracle import to_sympy

ORACLES = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tanh": mpmath.tanh,
    "logistic": lambda t: 1 / (1 + mpmath.exp(-t)),
    "atan": mpmath.atan,
    "erf": mpmath.erf,
}


@pytest.fixture
def ring():
    return Ring()


@pytest.fixture
def x(ring):
    return ring.generator(Coordinate("x", 0, positive=True))


@pytest.mark.parametrize("name", ORACLES)
def test_derivatives_of_a_function_are_those_of_mpmath(name, ring, x):
    argument = x * x + x.scaled(Fraction(1, 3))
    point = mpmath.mpf("0.7")
    with mpmath.workdps(40):
        value = evaluator(ring, {0: point})
        at = point**2 + point / 3
        for k, p in enumerate(derivatives(name, argument, 4)):
            assert abs(value(p) - mpmath.diff(ORACLES[name], at, k)) < 1e-12


@pytest.mark.parametrize("name", ORACLES)
def test_a_function_is_derived_by_the_chain_rule(name, ring, x):
    argument = x * x + x
    p = derivatives(name, argument, 0)[0] * x
    with mpmath.workdps(40):
        value = evaluator(ring, {0: mpmath.mpf("0.7")})
        want = mpmath.diff(lambda t: ORACLES[name](t * t + t) * t, mpmath.mpf("0.7"))
        assert abs(value(p.derivative(0)) - want) < 1e-12


@pytest.mark.parametrize("exponent", ["-3", "-1", "-1/2", "1/2", "3/2", "1/3", "-2/3", "5/2"])
@pytest.mark.parametrize("kind", ["monomial", "sum", "constant"])
def test_powers_are_those_of_sympy(exponent, kind, ring, x):
    exponent = Fraction(exponent)
    y = ring.generator(Coordinate("y", 1))
    base = {"monomial": x.scaled(18), "sum": (x + y * y).scaled(8), "constant": ring.constant(Fraction(8, 3))}[kind]
    got = to_sympy(power(base, exponent))
    want = to_sympy(base) ** sp.Rational(exponent.numerator, exponent.denominator)
    at = {sp.Symbol("x", positive=True): sp.Rational(7, 5), sp.Symbol("y", real=True): sp.Rational(3, 4)}
    assert abs(sp.N((got - want).subs(at), 30)) < 1e-25


def test_a_power_of_a_power_is_a_power(ring, x):
    y = ring.generator(Coordinate("y", 1))
    assert power(power(x, Fraction(1, 2)), 2) == x
    assert power(power(x.scaled(3), Fraction(-1, 2)), -2) == x.scaled(3)
    assert power(x * x * y, -1) * (x * x * y) == ring.one


def test_the_root_of_a_square_is_not_taken_for_a_number_of_any_sign(ring):
    y = ring.generator(Coordinate("y", 1))
    assert power(y * y, Fraction(1, 2)) != y


def test_square_roots_of_rationals_are_exact(ring):
    assert square_root(ring, Fraction(9, 4)).rational == Fraction(3, 2)
    assert square_root(ring, Fraction(2)) * square_root(ring, Fraction(8)) == ring.constant(4)
    assert square_root(ring, Fraction(3)) * square_root(ring, Fraction(2)) == square_root(ring, Fraction(6))
    with pytest.raises(Unreadable, match="negative"):
        square_root(ring, Fraction(-1))


def test_exponentials_of_sums_and_halves_are_related(ring, x):
    y = ring.generator(Coordinate("y", 1))
    assert exponential(x + y) == exponential(x) * exponential(y)
    assert exponential(x) * exponential(-x) == ring.one
    assert exponential(x.scaled(Fraction(1, 2))) ** 2 == exponential(x)
    assert exponential(derivatives("log", x, 0)[0].scaled(3)) == x**3


def test_substitution_reaches_into_functions(ring, x):
    y = ring.generator(Coordinate("y", 1))
    p = derivatives("tanh", x * y, 0)[0] * power(x + y, Fraction(-1, 2))
    assert substituted(p, 1, ring.zero) == ring.zero
    assert substituted(p, 1, x) == derivatives("tanh", x * x, 0)[0] * power(x + x, Fraction(-1, 2))


def test_an_unknown_function_is_named():
    with pytest.raises(Unreadable, match="lgamma"):
        derivatives("lgamma", Ring().one, 1)
