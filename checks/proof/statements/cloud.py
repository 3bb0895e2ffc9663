"""Particles that move each other: their step and what is declared of it, read on one path through the branches.

Three particles are read, so that the first, the last and one between are told apart.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.reader.interpreter import Reader
from sgmcmc_verification.checks.proof.ring import Generator, Polynomial, Ring
from sgmcmc_verification.checks.proof.statements.closure import CLOSED
from sgmcmc_verification.checks.proof.statements.result import Result, of_polynomials
from sgmcmc_verification.checks.proof.traced import Traced, evaluated
from sgmcmc_verification.checks.proof.zero import POINTS, at_random
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.particles.common import flatten
from sgmcmc_verification.targets.manifolds.euclidean import Euclidean
from sgmcmc_verification.targets.target import Target

DIRECTION = "towards the target"
COUNT = 3
"""Particles."""
NEGATIVE = 1e-12
"""Share of the largest entry above which an eigenvalue is negative and not zero: round-off of eigenvalues is 1e-15."""


def cloud_of(target: Target) -> Target:
    """The target of `COUNT` independent particles, whose position has a leading axis of particles in every leaf."""
    example = jax.tree.map(lambda leaf: jnp.stack([leaf] * COUNT), target.example)
    potential = lambda x: jnp.sum(jax.vmap(target.potential)(x))
    return Target(target.name, Euclidean(COUNT * target.size), example, potential)


class Cloud:
    """A step of particles and what is declared of it, on one path through the branches."""

    def __init__(self, sampler: Sampler, target: Target, estimator: Estimator, traced: Traced, reader: Reader) -> None:
        self.sampler, self.target, self.estimator, self.traced, self.reader = sampler, target, estimator, traced, reader
        self.state = traced.any_state(reader)
        self.z = [a.constant_term for a in traced.variable_of(reader, self.state)]
        if len(set(self.z)) != len(self.z) or not all(isinstance(generator_of(p), Coordinate) for p in self.z):
            raise Unreadable("a state that does not hold the particles themselves")
        self.x = self.rows(self.z)

    @property
    def ring(self) -> Ring:
        """The ring of the coordinates."""
        return self.reader.ring

    def closed(self, after: list[Polynomial]) -> Result:
        """Decide that nothing but the particles decides where they move. Raises Unreadable if draws do."""
        known = frozenset().union(*(p.numbers() for p in self.z))
        atoms = frozenset().union(*(p.atoms() for p in after))
        if any(p.has("draw") for p in after):
            raise Unreadable("interacting particles that depend on draws")
        hidden = any(isinstance(self.ring.generators[n], Coordinate) for n in atoms - known)
        reason = "hidden state: numbers beside the particles" if hidden else ""
        return Result(CLOSED, "z' depends on z alone", "undecided" if hidden else "proved", reason)

    def positive(self, equation: str, matrices: Any) -> Result:
        """Decide that symmetric matrices have no negative eigenvalue: at a few points, unless they are constant."""
        constant = all(p.rational is not None for p in np.ravel(np.array(matrices, object)))
        for attempt in range(POINTS):
            value = at_random(self.ring, str(attempt))
            numbers = np.array([[[float(value(p)) for p in row] for row in matrix] for matrix in matrices])
            if np.linalg.eigvalsh(numbers).min() < -NEGATIVE * np.abs(numbers).max() or not numbers.any():
                return Result(DIRECTION, equation, "undecided", "the target may repel")
        return Result(DIRECTION, equation, "proved" if constant else "verified")

    def vanishes(self, statement: str, equation: str, gap: Any, name: str) -> Result:
        """Decide that all entries of an array are zero; `name` is what an entry is called before its place."""
        places = ["".join(f" {i + 1}" for i in place) for place in np.ndindex(*gap.shape)]
        return of_polynomials(statement, equation, zip((name + place for place in places), gap.ravel(), strict=True))

    def rows(self, z: list[Polynomial]) -> Any:
        """z, as the pytree lays it out, as rows (M, d)."""
        return evaluated(self.reader, lambda flat: flatten(self.traced.unravel(flat)), z)


def generator_of(x: Polynomial) -> Generator | None:
    """The generator that a polynomial is; None if it is anything else."""
    terms = list(x.terms())
    single = len(terms) == 1 and terms[0][1] == 1 and [exponent for _, exponent in terms[0][0]] == [1]
    return x.ring.generators[number_of(x)] if single else None


def number_of(x: Polynomial) -> int:
    """The number of the generator that a polynomial is."""
    (number,) = x.numbers()
    return number
