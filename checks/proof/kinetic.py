"""A Hamiltonian that is solved for, where a sampler with a momentum declares none.

H = U(x) / T + sum_i a_i p_i^2 / 2 with unknown a_i. e^H A_1^* e^-H is a polynomial in the coordinates, the derivatives
of U and the a_i; it has to vanish for every U, so that each of its coefficients does. Those that are linear in one a_i
are solved, one after the other. H is never guessed: if what is left does not vanish, there is none of this form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sgmcmc_verification.checks.proof.functions import substituted
from sgmcmc_verification.checks.proof.operators import Density, Moments, coefficient
from sgmcmc_verification.checks.proof.ring import Free, Polynomial, Ring


@dataclass(frozen=True)
class InverseMass(Free):
    """The unknown a_i."""

    index: int

    @property
    def positive(self) -> bool:
        """An inverse mass is."""
        return True

    def __str__(self) -> str:
        return f"a{self.index + 1}"


def solved_hamiltonian(
    moments: Moments, potential: Polynomial, variables: Sequence[int], momenta: Sequence[int]
) -> Polynomial | None:
    """U / T + sum_i a_i p_i^2 / 2 with e^H A_1^* e^-H = 0 for every U; None if there is none.

    Args:
        moments: of a step.
        potential: U / T.
        variables: numbers of the coordinates z, in the order of the moments.
        momenta: those of them that are momenta.
    """
    ring = potential.ring
    unknowns = [ring.number(InverseMass(i)) for i in range(len(momenta))]
    squares = [ring.power(a, 1) * ring.power(p, 2) for a, p in zip(unknowns, momenta, strict=True)]
    hamiltonian = potential + ring.sum(squares).scaled(Fraction(1, 2))
    defect = Density(hamiltonian, variables).adjoint(coefficient(moments, 2))
    left = set(unknowns)
    while left:
        found = _linear(defect, left)
        if found is None:
            return None
        unknown, value = found
        hamiltonian = substituted(hamiltonian, unknown, ring.constant(value))
        defect = substituted(defect, unknown, ring.constant(value))
        left.remove(unknown)
    return None if defect else hamiltonian


def _linear(defect: Polynomial, unknowns: set[int]) -> tuple[int, Fraction] | None:
    """An unknown that a coefficient of the polynomial is linear in, with its positive value; None if there is none."""
    for coefficient_of in _coefficients(defect, unknowns):
        among = coefficient_of.numbers()
        if len(among) != 1:
            continue
        (unknown,) = among
        slope = coefficient_of.coefficient(((unknown, 1),))
        constant = coefficient_of.coefficient()
        if (
            slope
            and len(coefficient_of) <= 2
            and coefficient_of == _line(coefficient_of.ring, unknown, slope, constant)
        ):
            value = -constant / slope
            if value > 0:
                return unknown, value
    return None


def _line(ring: Ring, unknown: int, slope: Fraction, constant: Fraction) -> Polynomial:
    return ring.power(unknown, 1).scaled(slope) + ring.constant(constant)


def _coefficients(p: Polynomial, unknowns: set[int]) -> list[Polynomial]:
    """The coefficients, polynomials in the unknowns, of the monomials in everything else."""
    ring = p.ring
    parts: dict[tuple[tuple[int, int], ...], list[Polynomial]] = {}
    for factors, value in p.terms():
        outside = tuple(f for f in factors if f[0] not in unknowns)
        inside = tuple(f for f in factors if f[0] in unknowns)
        parts.setdefault(outside, []).append(ring.monomial(inside, value))
    return [ring.sum(terms) for terms in parts.values()]
