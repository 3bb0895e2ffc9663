"""The first coefficients of a step in h as polynomials, as a diagnosis reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from sgmcmc_verification.checks.diagnosis.cause import Diagnosis, factor
from sgmcmc_verification.checks.diagnosis.combinations import multiple
from sgmcmc_verification.checks.proof.expansion import Recipe, Region
from sgmcmc_verification.checks.proof.operators import Density, unit
from sgmcmc_verification.checks.proof.potential import DATA, DATUM, Jet
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring

LONG = 4
"""Terms of a polynomial that is printed below a sentence."""


@dataclass(frozen=True, eq=False)
class Step:
    """Drift and covariance of a step at each power of h, and what they should be, where anything is declared.

    Attributes:
        region: moments of z' - z for all of the state space.
        names: of the coordinates of z.
        size: number of those that are the position.
        temperature: T.
        recipe: the declared D and Q; None if nothing is declared, and the density is a stand-in.
        known: numbers that a factor may turn out to be.
        of_data: those made of the number N of data and n of them in a batch; none where no data are met.
        notes: of the reader.
    """

    region: Region
    recipe: Recipe | None
    names: Sequence[str]
    size: int
    temperature: Fraction
    known: Mapping[str, float]
    of_data: Mapping[str, Fraction]
    notes: Sequence[str]

    def factor(self, value: Fraction | float) -> str:
        """A factor with the names of the known numbers that it equals."""
        name = next((name for name, number in self.of_data.items() if value == number), None)
        return factor(float(value), self.known) if name is None else f"{name} ({value} with N = {DATA})"

    @property
    def ring(self) -> Ring:
        """The ring of all polynomials."""
        return self.density.hamiltonian.ring

    @property
    def density(self) -> Density:
        """exp(-H)."""
        return self.region.density

    def _moment(self, k: int, *places: int) -> Polynomial:
        row = self.region.moments.get(unit(len(self.names), *places))
        return self.ring.zero if row is None else row[k]

    def mean(self, k: int) -> list[Polynomial]:
        """E[z' - z] at s^k, s = sqrt(h)."""
        return [self._moment(k, i) for i in range(len(self.names))]

    def spread(self, k: int) -> list[list[Polynomial]]:
        """Cov(z' - z) at s^k."""
        n = range(len(self.names))
        cross = lambda i, j: self.ring.sum(self._moment(a, i) * self._moment(k - a, j) for a in range(1, k))
        return [[self._moment(k, i, j) - cross(i, j) for j in n] for i in n]

    @cached_property
    def drift(self) -> list[Polynomial]:
        """f, the mean move over h."""
        return self.mean(2)

    @cached_property
    def diffusion(self) -> list[list[Polynomial]]:
        """D, half of the covariance over h."""
        return [[p.scaled(Fraction(1, 2)) for p in row] for row in self.spread(2)]

    @cached_property
    def slope(self) -> list[Polynomial]:
        """grad U, (d,)."""
        return self._gradient("U")

    def _gradient(self, name: str) -> list[Polynomial]:
        """The first derivatives of an uninterpreted function by each coordinate of the position."""
        x = tuple(self.ring.power(v, 1) for v in self.density.variables[: self.size])
        orders = (tuple(int(i == j) for j in range(self.size)) for i in range(self.size))
        return [self.ring.generator(Jet(name, index, x)) for index in orders]

    @cached_property
    def likelihood(self) -> list[Polynomial] | None:
        """Derivatives of the terms of the data, summed over them; None if a step asks for none."""
        generators = (self.ring.generators[g] for p in self.drift for g in p.numbers())
        functions = {g.name for g in generators if isinstance(g, Jet) and g.name.startswith(DATUM)}
        if not functions:
            return None
        return [self.ring.sum(terms) for terms in zip(*map(self._gradient, sorted(functions)), strict=True)]

    def divergence(self, matrix: Any) -> list[Polynomial]:
        """Gamma_i = sum_j d_j M_ij."""
        n = range(len(self.names))
        return [self.ring.sum(matrix[i][j].derivative(self.density.variables[j]) for j in n) for i in n]

    def text(self) -> str:
        """Drift and variance of the last coordinates that have any: momenta, where there are any."""
        moved = [f"drift of {name} {p.text(LONG)}" for name, p in zip(self.names, self.drift, strict=True) if p]
        noisy = [
            f"variance of {name} ({self.diffusion[i][i].scaled(2).text(LONG)}) h"
            for i, name in enumerate(self.names)
            if self.diffusion[i][i]
        ]
        return "; ".join([*moved[-1:], *noisy[-1:]])


def times(matrix: Any, vector: Sequence[Polynomial]) -> list[Polynomial]:
    """M v."""
    ring = vector[0].ring
    return [ring.sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def product(a: Any, b: Any) -> list[list[Polynomial]]:
    """A B."""
    columns = list(zip(*b, strict=True))
    return [[row[0].ring.sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in a]


def flat(matrix: Any) -> list[Polynomial]:
    """The entries of a matrix."""
    return [entry for row in matrix for entry in row]


def of_data(step: Step, shares: Sequence[Fraction]) -> Diagnosis | None:
    """Prior and likelihood by the factors that they have in a drift; None if both have the same one."""
    if shares[0] == shares[1]:
        return None
    pairs = zip(("prior", "likelihood"), shares, strict=True)
    return Diagnosis("data", "; ".join(f"the {name} has the factor {step.factor(c)}" for name, c in pairs if c != 1))


def shared(step: Step, i: int, j: int) -> Diagnosis:
    """Two coordinates whose noise should be independent, and is not."""
    D, both = step.diffusion, f"{step.names[i]} and {step.names[j]}"
    if multiple([D[i][j] * D[i][j]], [D[i][i] * D[j][j]]) == 1:
        return Diagnosis("shared draws", f"the noise has rank 1 in {both}: they share a draw")
    return Diagnosis("shared draws", f"the noise of {both} is correlated: draws are shared")
