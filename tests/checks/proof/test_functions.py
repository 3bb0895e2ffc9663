"""Opaque functions against mpmath: their values, their derivatives, the normal forms of powers."""

from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from sgmcmc_verification.checks.proof.draws import evaluator, in_floats
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import (
    Abbreviation,
    absolute,
    derivatives,
    exponential,
    opened,
    power,
    shortened,
    signum,
    square_root,
    substituted,
)
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.slopes import Gradients
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


@pytest.mark.parametrize("at", ["-1.3", "0.2"])
def test_an_absolute_value_and_a_sign_are_those_of_numbers(at, ring):
    y = ring.generator(Coordinate("y", 0))
    argument = (y * y * y + y.scaled(2)).scaled(-3)
    inside = lambda t: -3 * (t**3 + 2 * t)
    with mpmath.workdps(40):
        value = evaluator(ring, {0: mpmath.mpf(at)})
        point = mpmath.mpf(at)
        assert abs(value(absolute(argument)) - abs(inside(point))) < 1e-30
        assert abs(value(signum(argument)) - mpmath.sign(inside(point))) < 1e-30
        want = mpmath.diff(lambda t: abs(inside(t)) ** 3, point)
        p = absolute(argument) ** 3
        assert abs(value(p.derivative(0)) - want) < 1e-12
        assert abs(Gradients(ring, value, [0])(p)[0] - want) < 1e-12
    assert absolute(argument) ** 2 == argument**2
    assert absolute(argument) == absolute(-argument)
    assert power(absolute(argument), -1) * absolute(argument) == ring.one


def test_names_are_opened_where_an_unknown_is_inside(ring, x):
    y = ring.generator(Coordinate("y", 1))
    long, other = (ring.generator(Abbreviation(p)) for p in (x + y * y, x + ring.one))
    nested = ring.generator(Abbreviation(long * y + other))
    assert opened(nested * nested, frozenset({1})) == (x * y + y**3 + other) ** 2
    assert opened(other, frozenset({1})) == other


def test_a_long_term_has_a_name_and_the_same_value(ring):
    product = ring.one
    for i in range(15):
        product = product * ring.generator(Coordinate(f"y{i}", i))
    p = product + ring.one
    short = shortened(p, 30, lambda number: number == 3)
    assert max(len(factors) for factors, _ in short.terms()) == 2  # what may not go into names is left beside them
    values = {i: mpmath.mpf(i + 1) / 7 for i in range(15)}
    with mpmath.workdps(40):
        assert abs(evaluator(ring, values)(short) - evaluator(ring, values)(p)) < 1e-35


def test_values_in_double_precision_are_those_of_fifty_digits(ring, x):
    y = ring.generator(Coordinate("y", 1))
    p = derivatives("tanh", x * y, 0)[0] * power(x + y * y, Fraction(-1, 2)) + absolute(y - x) * x.scaled(
        Fraction(2, 3)
    )
    numbers = {0: 0.7, 1: -1.9}
    with mpmath.workdps(40):
        want = evaluator(ring, {k: mpmath.mpf(v) for k, v in numbers.items()})(p)
        assert abs(in_floats(ring, numbers.__getitem__)(p) - want) < 1e-14
    with pytest.raises(OverflowError):
        in_floats(ring, {0: 1e200, 1: 1.0}.__getitem__)(exponential(x))
