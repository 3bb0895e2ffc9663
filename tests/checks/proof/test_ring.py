"""The ring against SymPy: random polynomials, products, derivatives, reductions."""

import random
from fractions import Fraction

import pytest
import sympy as sp

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import Applied, InverseRoot, Root
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from tests.checks.proof.oracle import to_sympy


def names(ring, count=4):
    return [ring.generator(Coordinate(f"x{i + 1}", i)) for i in range(count)]


def random_polynomial(ring: Ring, seed: int, terms: int = 6) -> Polynomial:
    source, xs = random.Random(seed), names(ring)
    total = ring.zero
    for _ in range(terms):
        term = ring.constant(Fraction(source.randint(-9, 9), source.randint(1, 12)))
        for _ in range(3):
            term = term * ring.power(next(iter(source.choice(xs).numbers())), source.choice((-2, -1, 1, 2)))
        total = total + term
    return total


@pytest.mark.parametrize("seed", range(10))
def test_products_sums_and_powers_are_those_of_sympy(seed):
    ring = Ring()
    a, b = random_polynomial(ring, seed), random_polynomial(ring, seed + 100)
    for ours, theirs in (
        (a * b, to_sympy(a) * to_sympy(b)),
        (a + b, to_sympy(a) + to_sympy(b)),
        (a - b.scaled(Fraction(2, 3)), to_sympy(a) - sp.Rational(2, 3) * to_sympy(b)),
        (a**3, to_sympy(a) ** 3),
    ):
        assert sp.expand(to_sympy(ours) - theirs) == 0


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_are_those_of_sympy(seed):
    ring = Ring()
    p = random_polynomial(ring, seed)
    x = names(ring)[1]
    (number,) = x.numbers()
    assert sp.expand(to_sympy(p.derivative(number)) - sp.diff(to_sympy(p), to_sympy(x))) == 0


def test_equal_polynomials_have_one_form():
    ring = Ring()
    x, y, *_ = names(ring)
    assert (x + y) * (x - y) == x * x - y * y
    assert hash((x + y) * (x - y)) == hash(x * x - y * y)
    assert x.scaled(Fraction(2, 4)) == x.scaled(Fraction(1, 2))
    assert not x - x


def test_roots_are_reduced():
    ring = Ring()
    root = ring.generator(Root(6))
    assert (root * root).rational == 6
    assert (root**3) == root.scaled(6)
    assert ring.power(next(iter(root.numbers())), -1) == root.scaled(Fraction(1, 6))


def test_negative_powers_of_an_inverse_root_are_its_base():
    ring = Ring()
    x, y, *_ = names(ring)
    base = x + y
    assert ring.generator(InverseRoot(base), -2) == base
    assert ring.generator(InverseRoot(base), -1) == base * ring.generator(InverseRoot(base))


def test_generators_of_one_ring_are_unknown_to_another():
    first, second = Ring(), Ring()
    first.generator(Coordinate("x", 0))
    y = second.generator(Coordinate("y", 0))
    assert [str(g) for g in second.generators] == ["y"]
    assert y.numbers() == {0}


def test_atoms_are_those_of_arguments_too():
    ring = Ring()
    x, y, *_ = names(ring)
    p = ring.generator(Applied("tanh", x * y))
    assert {str(ring.generators[n]) for n in p.atoms()} >= {"x1", "x2"}
    assert p.has("state")
    assert not p.has("draw")


def test_work_beyond_the_limit_is_refused():
    ring = Ring()
    x, y, *_ = names(ring)
    with pytest.raises(Unreadable, match="products of terms"), ring.limited(10):
        (x + y) ** 8
    assert (x + y) ** 8  # the limit ends with its context
