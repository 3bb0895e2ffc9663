"""Particles that move each other: what their mean velocity is at the target, for every U.

With xi(x, y) = -a(x, y) grad U(x) + b(x, y) the velocity that a particle at x gives one at y,

    step along the velocity   x_j' - x_j = (h / M) sum_i xi(x_i, x_j), whatever else is in the state
    Stein's identity          b = div_x a, hence E_p xi(x, y) = integral of div_x(a p) = 0 for p = exp(-U)
    velocity of the method    xi = k grad log p + grad_x k,  or  G^-1 grad_y (1 / p) div_x(p G^-1 grad_x k)
    all particles alike       xi(x_i, x_j) is one function of two positions, where no kernel is declared
    towards the target        k(x, x) > 0: with -k the target repels, which without a declared kernel is left open

xi is read from the declared velocity with all the weight on one particle. The statements say that infinitely many
particles of the law p do not move. Stein's identity is necessary for that: the integral of p (b - div_x a) is zero for
all p only if b - div_x a is. A width of the kernel that a rule makes of all particles is held fixed, as it is in that
limit, and is any number where its rule cannot be read.

Source: liu2016stein, equation (8) and lemma 2.2; liu2018riemannian, theorem 2.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import all_substituted, substituted
from sgmcmc_verification.checks.proof.potential import Coordinate, Jet
from sgmcmc_verification.checks.proof.reader.calls import Call
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.statements.closure import finite_step
from sgmcmc_verification.checks.proof.statements.cloud import COUNT, DIRECTION, Cloud, number_of
from sgmcmc_verification.checks.proof.statements.result import Result, of_polynomials
from sgmcmc_verification.checks.proof.traced import evaluated
from sgmcmc_verification.checks.proof.zero import is_zero
from sgmcmc_verification.samplers.interface.claims import ParticleVelocity, RiemannianVelocity, SteinVelocity
from sgmcmc_verification.samplers.particles.common import flatten
from sgmcmc_verification.samplers.riemannian.metrics import dense

ALONG, ALIKE, STEIN, METHOD = (
    "step along the velocity",
    "all particles alike",
    "Stein's identity",
    "velocity of the method",
)
PAIRS = tuple(itertools.permutations(range(COUNT), 2))

Named = tuple[str, Polynomial]


class Pair(NamedTuple):
    """xi = b - a grad U of two particles: a (d, d) and b (d,)."""

    a: list[list[Polynomial]]
    b: list[Polynomial]

    @property
    def entries(self) -> list[Polynomial]:
        """All of them."""
        return [p for row in (*self.a, self.b) for p in row]


class Velocity(Cloud):
    """Particles with a declared velocity that is a mean over them."""

    def moves(self) -> Iterator[Result]:
        """Decide how the particles move, and that nothing but them decides it."""
        h = finite_step(self.reader.space)
        after = [a.constant_term for a in self.traced.moved(self.reader, self.state, h)]
        yield self.closed(after)
        single = self._single()
        share = h.constant_term * self.ring.constant(Fraction(1, COUNT))
        gap = self.rows(after) - self.x - np.sum(single, axis=0) * share
        yield self.vanishes(ALONG, "x_j' - x_j = (h / M) sum_i xi(x_i, x_j)", gap, "the move of particle")

    def identities(self) -> Iterator[Result]:
        """Decide what the velocity is that particles give each other."""
        single, claims = self._single(), self.sampler.claims
        kernel = claims.get(SteinVelocity) or claims.get(RiemannianVelocity)
        # with a declared kernel all pairs are compared with it below
        pairs = {(i, j): self._pair(single, i, j) for i, j in (PAIRS if kernel is None else PAIRS[:1])}
        yield of_polynomials(STEIN, "b = div_x a", self._stein(pairs))
        if kernel is None:
            yield of_polynomials(ALIKE, "xi is one function of two positions", self._alike(pairs))
            reason = "without a declared kernel the target may repel"
            yield Result(DIRECTION, "k is a positive kernel", "undecided", reason)
            return
        gap = np.array(single) - evaluated(self.reader, self._of_method(kernel), self.z)
        yield self.vanishes(METHOD, "xi is that of the declared kernel, for all pairs", gap, "the velocity of a pair")

        diagonal = evaluated(self.reader, self._diagonal(kernel), self.z)
        yield self.positive("k(x, x) > 0", [[[p]] for p in diagonal])

    def _diagonal(self, claim: SteinVelocity | RiemannianVelocity) -> Callable[[jax.Array], jax.Array]:
        """z -> k(x_i, x_i), (M,)."""

        def of(flat: jax.Array) -> jax.Array:
            rows = flatten(self.traced.unravel(flat))
            return jax.vmap(lambda x: claim.kernel(rows)(x, x))(rows)

        return of

    def _single(self) -> list[Any]:
        """xi(x_i, x_j) for each i, (M, d) over j: the declared velocity with all the weight on particle i."""
        if self.traced.size != self.traced.dimension:
            raise Unreadable("interacting particles with auxiliary variables")
        claim = self.sampler.claims[ParticleVelocity]
        mass = lambda i: [self.ring.constant(int(k == i)) for k in range(COUNT)]
        return [self._velocity(claim, mass(i)) for i in range(COUNT)]

    def _velocity(self, claim: ParticleVelocity, weights: list[Polynomial]) -> Any:
        """The declared velocity (M, d) of particles with weights."""
        size = len(self.z)

        def velocity(values: jax.Array) -> jax.Array:
            rows = flatten(self.traced.unravel(values[:size]))
            return claim.field(rows, jax.vmap(self._gradient)(rows), values[size:])

        return evaluated(self.reader, velocity, [*self.z, *weights])

    def _gradient(self, x: jax.Array) -> jax.Array:
        """The gradient (d,) of the estimator at a flat position (d,)."""
        key, position = jax.random.key(0), self.target.unravel(x)
        estimate, _ = self.estimator.estimate(key, self.estimator.init(key, position), position)
        return self.target.ravel(estimate.gradient)

    def _pair(self, single: list[Any], i: int, j: int) -> Pair:
        """a and b of the velocity that particle i gives particle j. Raises Unreadable if it has not this form."""
        size = self.target.size
        units = [tuple(int(b == c) for b in range(size)) for c in range(size)]
        slopes = [self.ring.generator(Jet("U", unit, tuple(self.x[i]))) for unit in units]
        velocity = [self._held(p) for p in single[i][j]]
        a = [[-p.derivative(number_of(slope)) for slope in slopes] for p in velocity]
        b = [p + self.ring.sum(map(_product, row, slopes)) for p, row in zip(velocity, a, strict=True)]
        parts = Pair(a, b).entries
        if any(isinstance(self.ring.generators[n], Jet) for p in parts for n in p.atoms()):
            raise Unreadable("a velocity that is not linear in the gradient at the particle that gives it")
        others = [number_of(x) for k in range(COUNT) if k not in (i, j) for x in self.x[k]]
        if not all(is_zero(p.derivative(n)) for p in parts for n in others):
            raise Unreadable("particles that change the velocity that others give each other")
        return Pair(a, b)

    def _held(self, p: Polynomial) -> Polynomial:
        """A polynomial with a symbol in the place of the function that could not be read."""
        kept = [n for n in p.atoms() if isinstance(self.ring.generators[n], Call)]
        if len(kept) > 1:
            raise Unreadable("several functions that cannot be read")
        return substituted(p, kept[0], self.ring.generator(Coordinate("c", -1))) if kept else p

    def _stein(self, pairs: Mapping[tuple[int, int], Pair]) -> Iterator[Named]:
        """b - div_x a for the first pair."""
        (i, j), (a, b) = next(iter(pairs.items()))
        for c, (row, rest) in enumerate(zip(a, b, strict=True)):
            divergence = self.ring.sum(p.derivative(number_of(x)) for p, x in zip(row, self.x[i], strict=True))
            yield f"the velocity of particle {j + 1} by {i + 1}, coordinate {c + 1}", rest - divergence

    def _alike(self, pairs: Mapping[tuple[int, int], Pair]) -> Iterator[Named]:
        """a and b of each pair less those of the first one at the place of the pair."""
        (i, j), first = next(iter(pairs.items()))
        old = [number_of(x) for x in (*self.x[i], *self.x[j])]
        for (k, m), pair in pairs.items():
            moved = dict(zip(old, (*self.x[k], *self.x[m]), strict=True))
            for own, other in zip(pair.entries, first.entries, strict=True):
                yield f"the velocity of particle {m + 1} by {k + 1}", own - all_substituted(other, moved)

    def _of_method(self, claim: SteinVelocity | RiemannianVelocity) -> Callable[[jax.Array], jax.Array]:
        """z -> xi(x_i, x_j), (M, M, d), of the declared kernel by automatic differentiation."""
        gradient = jax.grad(self.target.flat_potential)

        def of(flat: jax.Array) -> jax.Array:
            rows = flatten(self.traced.unravel(flat))
            kernel = claim.kernel(rows)
            rise = jax.grad(kernel)

            def stein(x: jax.Array, y: jax.Array) -> jax.Array:
                return rise(x, y) - kernel(x, y) * gradient(x)

            def functional(x: jax.Array, y: jax.Array) -> jax.Array:
                flux = lambda at: inverse(at) @ rise(at, y)
                return jnp.trace(jax.jacfwd(flux)(x)) - gradient(x) @ flux(x)

            if isinstance(claim, SteinVelocity):
                pair = stein
            else:
                metric = claim.inverse_metric
                if metric is None:
                    raise Unreadable("a velocity in ambient coordinates")
                inverse = lambda at: dense(metric(at))
                pair = lambda x, y: inverse(y) @ jax.grad(functional, 1)(x, y)
            return jax.vmap(lambda x: jax.vmap(lambda y: pair(x, y))(rows))(rows)

        return of


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    return a * b
