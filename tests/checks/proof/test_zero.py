"""The ranks of a zero: what is proved, verified, round-off, and not zero."""

from fractions import Fraction

import pytest

from sgmcmc_verification.checks.proof.errors import NotReal
from sgmcmc_verification.checks.proof.functions import Applied, derivatives, power
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.ring import Ring
from sgmcmc_verification.checks.proof.zero import is_zero, status, witness


@pytest.fixture
def ring():
    return Ring()


@pytest.fixture
def x(ring):
    return ring.generator(Coordinate("x", 0))


def test_the_empty_polynomial_is_proved(ring, x):
    assert status(x - x) == "proved"
    assert status(ring.zero) == "proved"


def test_relations_of_roots_and_circles_are_proved(ring, x):
    base = x * x + ring.one
    root = power(base, Fraction(1, 2))
    assert root * root - base  # not the empty polynomial
    assert status(root * root - base) == "proved"
    inverse = power(base + root, -1)  # nested
    assert status(inverse * (base + root) - ring.one) == "proved"
    sine, cosine = derivatives("sin", x, 1)
    assert status(sine**2 + cosine**2 - ring.one) == "proved"
    assert status(sine**4 - (ring.one - cosine**2) ** 2) == "proved"


def test_an_identity_that_the_ring_does_not_know_is_verified_only(ring, x):
    double = derivatives("sin", x.scaled(2), 0)[0]
    sine, cosine = derivatives("sin", x, 1)
    assert status(double - (sine * cosine).scaled(2)) == "verified"


def test_round_off_of_constants_is_told_from_errors(ring, x):
    assert status(x.scaled(1 + Fraction(1, 2**52)) - x) == "round-off"
    assert status(x.scaled(1 + Fraction(1, 2**23)) - x) == "single"
    assert status(x.scaled(1 + Fraction(1, 10**4)) - x) == "nonzero"


def test_a_root_of_a_square_is_not_the_number_itself(ring, x):
    """Points of either sign are tried: sqrt(x^2) = |x|."""
    root = power(x * x, Fraction(1, 2))
    assert not is_zero(root - x)
    assert not is_zero(root + x)


def test_no_real_point_is_no_zero(ring, x):
    with pytest.raises(NotReal):
        status(power(-(x * x) - ring.one, Fraction(1, 2)) - x)


def test_contradictions_have_no_witness(ring, x):
    one = ring.one
    assert witness({x - one: True})
    assert not witness({x - one.scaled(2): False, x + one: True})
    assert not witness({x * x + one: True})
    assert witness({ring.generator(Applied("exp", x)) - one.scaled(10**6): False})
