"""A Hamiltonian that is solved for, where a sampler with auxiliary variables declares none.

H = U(x) / T + sum_i (a_i y_i^2 / 2 + b_i y_i) with unknown a_i > 0 and b_i, over the momenta, thermostats and memories
y. e^H A_1^* e^-H is a polynomial in the coordinates, the derivatives of U and the unknowns; it has to vanish for every
U, so that each of its coefficients does. Those that are linear in one unknown are solved, one after the other. H is
never guessed: if what is left does not vanish, there is none of this form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sgmcmc_verification.checks.proof.functions import opened, substituted
from sgmcmc_verification.checks.proof.operators import Density, Moments, coefficient
from sgmcmc_verification.checks.proof.ring import Free, Polynomial
from sgmcmc_verification.checks.proof.zero import is_zero


@dataclass(frozen=True)
class Stiffness(Free):
    """The unknown a_i: an inverse mass, where y_i is a momentum."""

    index: int

    @property
    def positive(self) -> bool:
        """It has to be, for exp(-H) to have a finite integral."""
        return True

    def __str__(self) -> str:
        return f"a{self.index + 1}"


@dataclass(frozen=True)
class Pull(Free):
    """The unknown b_i: -b_i / a_i is the mean of y_i."""

    index: int

    def __str__(self) -> str:
        return f"b{self.index + 1}"


def solved_hamiltonian(
    moments: Moments, potential: Polynomial, variables: Sequence[int], auxiliary: Sequence[int]
) -> Polynomial | None:
    """U / T + sum_i (a_i y_i^2 / 2 + b_i y_i) with e^H A_1^* e^-H = 0 for every U; None if there is none.

    Args:
        moments: of a step.
        potential: U / T.
        variables: numbers of the coordinates z, in the order of the moments.
        auxiliary: those of them that are no coordinates of the position.
    """
    ring = potential.ring
    stiff = [ring.number(Stiffness(i)) for i in range(len(auxiliary))]
    pulls = [ring.number(Pull(i)) for i in range(len(auxiliary))]
    squares = [ring.power(a, 1) * ring.power(y, 2) for a, y in zip(stiff, auxiliary, strict=True)]
    lines = [ring.power(b, 1) * ring.power(y, 1) for b, y in zip(pulls, auxiliary, strict=True)]
    hamiltonian = potential + ring.sum(squares).scaled(Fraction(1, 2)) + ring.sum(lines)
    defect = opened(Density(hamiltonian, variables).adjoint(coefficient(moments, 2)), frozenset(variables))
    left = {*stiff, *pulls}
    while left:
        found = _solved(defect, left, set(stiff))
        if found is None:
            return None
        unknown, value = found
        hamiltonian = substituted(hamiltonian, unknown, ring.constant(value))
        defect = substituted(defect, unknown, ring.constant(value))
        left.remove(unknown)
    return hamiltonian if is_zero(defect) else None


def _solved(defect: Polynomial, unknowns: set[int], positive: set[int]) -> tuple[int, Fraction] | None:
    """An unknown with the value that a coefficient of the polynomial leaves it; None if no coefficient does."""
    for coefficient_of in _coefficients(defect, unknowns):
        among = coefficient_of.numbers()
        if len(among) != 1:
            continue
        (unknown,) = among
        value = _root(coefficient_of, unknown, unknown in positive)
        if value is not None and (value > 0 or unknown not in positive):
            return unknown, value
    return None


def _root(p: Polynomial, unknown: int, positive: bool) -> Fraction | None:
    """The value at which l y^n + m y^(n + 1) is zero, n = 0 unless y is positive; None for other polynomials."""
    by_power = {dict(factors).get(unknown, 0): value for factors, value in p.terms()}
    least = min(by_power)
    if not positive:
        least = min(least, 0)
    if least < 0 or not set(by_power) <= {least, least + 1} or least + 1 not in by_power:
        return None
    return -by_power.get(least, Fraction(0)) / by_power[least + 1]


def _coefficients(p: Polynomial, unknowns: set[int]) -> list[Polynomial]:
    """The coefficients, polynomials in the unknowns, of the monomials in everything else."""
    ring = p.ring
    parts: dict[tuple[tuple[int, int], ...], list[Polynomial]] = {}
    for factors, value in p.terms():
        outside = tuple(f for f in factors if f[0] not in unknowns)
        inside = tuple(f for f in factors if f[0] in unknowns)
        parts.setdefault(outside, []).append(ring.monomial(inside, value))
    return [ring.sum(terms) for terms in parts.values()]
