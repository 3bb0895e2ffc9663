"""Series against SymPy's expansions, and the precision that they keep."""

from fractions import Fraction

import pytest
import sympy as sp

from sgmcmc_verification.checks.proof.errors import PrecisionLost, Unreadable
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.series import EXACT, Series, Space, apply, raised
from tests.checks.proof.oracle import S, to_sympy

ORDER = 5
X = sp.Symbol("x", positive=True)


@pytest.fixture
def space():
    return Space(Ring(), ORDER)


@pytest.fixture
def x(space):
    return space.lift(space.ring.generator(Coordinate("x", 0, positive=True)))


def step(space, k=1):
    return space.power_of_step(k)


def expected(expression, k):
    """The coefficient of s^k, by SymPy."""
    return sp.series(expression, S, 0, ORDER + 1).removeO().expand().coeff(S, k)


CASES = {
    "exp": (lambda x, s: apply("exp", x * s + s * s), lambda: sp.exp(X * S + S**2)),
    "log": (lambda x, s: apply("log", x + s), lambda: sp.log(X + S)),
    "sin": (lambda x, s: apply("sin", x + s), lambda: sp.sin(X + S)),
    "tanh": (lambda x, s: apply("tanh", s * x), lambda: sp.tanh(S * X)),
    "inverse": (lambda x, s: raised(x + s, -1), lambda: 1 / (X + S)),
    "root": (lambda x, s: raised(x + s * s, Fraction(1, 2)), lambda: sp.sqrt(X + S**2)),
    "inverse root": (lambda x, s: raised(x + s, Fraction(-1, 2)), lambda: 1 / sp.sqrt(X + S)),
    "leading power": (lambda x, s: raised(s * s * x + s * s * s, Fraction(1, 2)), lambda: S * sp.sqrt(X + S)),
}


@pytest.mark.parametrize("name", CASES)
def test_coefficients_are_those_of_sympy(name, space, x):
    ours, theirs = CASES[name][0](x, step(space)), CASES[name][1]()
    for k in range(min(ORDER, ours.precision - 1) + 1):
        difference = sp.simplify(to_sympy(ours.coefficient(k)) - expected(theirs, k))
        assert difference == 0, (name, k)


def test_precision_is_lost_by_division_and_never_pretended(space, x):
    h = step(space, 2)
    truncated = apply("exp", h * x)  # O(s^6)
    assert truncated.precision == ORDER + 1
    quotient = (truncated - space.one) * raised(h, -1)
    assert quotient.precision == ORDER - 1
    assert quotient.constant_term == x.constant_term
    with pytest.raises(PrecisionLost):
        quotient.coefficient(ORDER - 1)


def test_a_finite_series_stays_exact(space, x):
    h = step(space, 2)
    assert (x + h * x).precision == EXACT
    assert (h * h * h).precision == ORDER + 1  # s^6 was dropped
    assert not (h * h * h)
    assert not (h * h * h).is_zero


def test_a_truncated_zero_has_no_leading_term(space):
    h = step(space, 2)
    with pytest.raises(PrecisionLost):
        _ = (h * h * h).leading


def test_what_is_no_series_is_refused(space, x):
    s = step(space)
    with pytest.raises(Unreadable, match="no power of sqrt"):
        raised(s * x, Fraction(1, 2))
    with pytest.raises(Unreadable, match="grows"):
        apply("exp", raised(s, -1))
    with pytest.raises(Unreadable, match="division by zero"):
        raised(space.zero, -1)


def test_long_coefficients_are_abbreviated_and_equal_ones_are_the_same():
    space = Space(Ring(), 0, longest=3)
    xs = [space.lift(space.ring.generator(Coordinate(f"x{i}", i))) for i in range(5)]
    total = xs[0] + xs[1] + xs[2] + xs[3]
    again = xs[3] + xs[2] + xs[1] + xs[0]
    assert len(total.constant_term) == 1
    assert isinstance(total, Series)
    other = Space(space.ring, 0)
    plain = [other.lift(a.constant_term) for a in xs]
    assert len((plain[0] + plain[1] + plain[2] + plain[3]).constant_term) == 4
    # sums of names and of terms differ in form, as the order of the sum does
    assert total.same(xs[0] + xs[1] + xs[2] + xs[3])
    assert again.same(xs[3] + xs[2] + xs[1] + xs[0])
