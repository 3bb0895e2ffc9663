"""Particles that move each other: what their mean velocity is at the target, for every U.

With xi(x, y) = -a(x, y) grad U(x) + b(x, y) the velocity that a particle at x gives one at y,

    step along the velocity   x_j' - x_j = (h / M) sum_i xi(x_i, x_j), whatever else is in the state
    Stein's identity          b = div_x a, hence E_p xi(x, y) = integral of div_x(a p) = 0 for p = exp(-U)
    velocity of the method    xi = k grad log p + grad_x k,  or  G^-1 grad_y (1 / p) div_x(p G^-1 grad_x k)
    all particles alike       xi(x_i, x_j) is one function of two positions, where no kernel is declared
    towards the target        k(x, x) > 0: with -k the target repels, which without a declared kernel is left open

xi is read from the declared velocity with all the weight on one particle. The statements say that infinitely many
particles of the law p do not move. Stein's identity is necessary for that: the integral of p (b - div_x a) is zero for
all p only if b - div_x a is. Three particles are read, so that the first, the last and one between are told apart. A
width of the kernel that a rule makes of all particles is held fixed, as it is in that limit, and is any number where
its rule cannot be read.

Source: liu2016stein, equation (8) and lemma 2.2; liu2018riemannian, theorem 2.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from checks.proof.errors import Unreadable
from checks.proof.functions import all_substituted, substituted
from checks.proof.potential import Coordinate, Jet
from checks.proof.reader.calls import Call
from checks.proof.reader.interpreter import Reader
from checks.proof.reader.paths import Path, every_path
from checks.proof.reader.primitives import new_reader
from checks.proof.ring import Generator, Polynomial, Ring
from checks.proof.statements.closure import CLOSED, LONGEST, finite_space, finite_step
from checks.proof.statements.marginal_flow import ESTIMATES, SETTLED, estimate_of, flow_of, residuals_of
from checks.proof.statements.orders import MARGINAL, RECIPE
from checks.proof.statements.result import Result, of_polynomials
from checks.proof.traced import Traced, evaluated
from checks.proof.zero import POINTS, at_random, is_zero, points_with
from samplers.interface.aliases import Scalar
from samplers.interface.claims import (
    DensityEstimate,
    MarginalFlow,
    ParticleVelocity,
    RiemannianVelocity,
    SteinVelocity,
)
from samplers.interface.sampler import Estimator, Sampler
from samplers.particles.common import flatten
from samplers.particles.kernels import Bandwidth, bandwidths_of, first_bandwidth
from samplers.riemannian.metrics import dense
from targets.manifolds.euclidean import Euclidean
from targets.target import Target

ALONG, ALIKE, STEIN, METHOD, FLOW, DIRECTION = (
    "step along the velocity",
    "all particles alike",
    "Stein's identity",
    "velocity of the method",
    "flow of the recipe",
    "towards the target",
)
COUNT = 3
"""Particles."""
MOST_REGIONS = 4
"""Regions that are read: each costs as much as a proof without branches."""
NEGATIVE = 1e-12
"""Share of the largest entry above which an eigenvalue is negative and not zero: round-off of eigenvalues is 1e-15."""
PAIRS = tuple(itertools.permutations(range(COUNT), 2))

Named = tuple[str, Polynomial]


MULTIPLIERS, EQUATION_OF_MULTIPLIERS = "multipliers of the transport", "u_j sum_i u_i E(z_i, z_j) = M"


def width_of(rule: Bandwidth, particles: jax.Array) -> Scalar:
    """The width of the kernel that a rule makes of particles (M, n)."""
    (width,), _ = bandwidths_of(rule, particles, first_bandwidth(rule, particles))
    return width


class Pair(NamedTuple):
    """xi = b - a grad U of two particles: a (d, d) and b (d,)."""

    a: list[list[Polynomial]]
    b: list[Polynomial]

    @property
    def entries(self) -> list[Polynomial]:
        """All of them."""
        return [p for row in (*self.a, self.b) for p in row]


def particle_statements(
    sampler: Sampler, target: Target, estimator: Estimator
) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """The results for particles with a declared velocity that is a mean over them, and notes.

    Raises:
        Unreadable: if the step or the velocity cannot be read.
    """
    traced, notes, results = Traced(sampler, estimator, cloud_of(target)), set[str](), list[Result]()

    estimated = DensityEstimate in sampler.claims

    def read(statements: Callable[[_Flow], Iterator[Result]], path: Path) -> None:
        # the gradients at the particles are looked for in a velocity, and would be lost in names
        reader = new_reader(finite_space(LONGEST if estimated else None), path, finite=True)
        reader.keeps_calls = True
        found = list(statements(_Flow(sampler, target, estimator, traced, reader)))
        if any(isinstance(g, Call) for g in reader.ring.generators):
            # what is nonzero for any number may be zero for the one that was not read
            found = [replace(r, outcome="undecided") if r.outcome == "violated" else r for r in found]
        if path.outcomes or path.intervals or path.acceptances:
            raise Unreadable("interacting particles that depend on draws")
        notes.update(reader.notes)
        results.extend(replace(r, region=tuple(path.region)) for r in found)

    for statements in (_Flow.flows,) if estimated else (_Flow.moves, _Flow.identities):  # the work is counted by ring
        for count, _ in enumerate(every_path(functools.partial(read, statements)), 1):
            if count > MOST_REGIONS:
                raise Unreadable(f"interacting particles with more than {MOST_REGIONS} regions")
    return tuple(results), tuple(sorted(notes))


def cloud_of(target: Target) -> Target:
    """The target of `COUNT` independent particles, whose position has a leading axis of particles in every leaf."""
    example = jax.tree.map(lambda leaf: jnp.stack([leaf] * COUNT), target.example)
    potential = lambda x: jnp.sum(jax.vmap(target.potential)(x))
    return Target(target.name, Euclidean(COUNT * target.size), example, potential)


class _Flow:
    """A step of particles and their declared velocity, on one path through the branches."""

    def __init__(self, sampler: Sampler, target: Target, estimator: Estimator, traced: Traced, reader: Reader) -> None:
        self.sampler, self.target, self.estimator, self.traced, self.reader = sampler, target, estimator, traced, reader
        self.state = traced.any_state(reader)
        self.z = [a.constant_term for a in traced.variable_of(reader, self.state)]
        if len(set(self.z)) != len(self.z) or not all(isinstance(_generator(p), Coordinate) for p in self.z):
            raise Unreadable("a state that does not hold the particles themselves")
        self.x = self._rows(self.z)

    @property
    def ring(self) -> Ring:
        """The ring of the coordinates."""
        return self.reader.ring

    def moves(self) -> Iterator[Result]:
        """Decide how the particles move, and that nothing but them decides it."""
        h = finite_step(self.reader.space)
        after = [a.constant_term for a in self.traced.moved(self.reader, self.state, h)]
        yield self._closed(after)
        single = self._single()
        share = h.constant_term * self.ring.constant(Fraction(1, COUNT))
        gap = self._rows(after) - self.x - np.sum(single, axis=0) * share
        yield self._vanishes(ALONG, "x_j' - x_j = (h / M) sum_i xi(x_i, x_j)", gap, "the move of particle")

    def flows(self) -> Iterator[Result]:
        """Decide that particles with an estimate of their density follow the declared SDE."""
        h, claims = finite_step(self.reader.space), self.sampler.claims
        estimate, dynamics = claims[DensityEstimate], claims[MarginalFlow].dynamics(self.target)
        density, rule = estimate.sampler.density, estimate.sampler.bandwidth
        if density not in ESTIMATES:
            raise Unreadable(f"the estimate {density} of a density, which is no derivative of a sum of kernels")
        after = [a.constant_term for a in self.traced.moved(self.reader, self.state, h)]
        yield self._closed(after)

        ridge = estimate.sampler.ridge if density == "gfsf" else 0.0

        def score(block: jax.Array) -> jax.Array:
            return estimate_of(density, block, width_of(rule, block), ridge)

        def velocity(flat: jax.Array) -> jax.Array:
            rows, size = flatten(self.traced.unravel(flat)), self.target.size
            whole = estimate.joint or rows.shape[1] == size
            blocks = (rows,) if whole else (rows[:, :size], rows[:, size:])
            return jax.vmap(flow_of(dynamics, estimate.form))(rows, jnp.concatenate([score(b) for b in blocks], axis=1))

        if density == "jko":
            yield self._settled(rule)
        gap = self._rows(after) - self.x - evaluated(self.reader, velocity, self.z) * h.constant_term
        yield self._vanishes(FLOW, "z_j' - z_j = h v_j of the declared H, D, Q and estimate", gap, "the move of")
        place = list(self.x[0])
        Q, D = (evaluated(self.reader, matrix, place) for matrix in (dynamics.Q, dynamics.D))
        yield self._vanishes(RECIPE, "Q + Q^T = 0, D - D^T = 0", np.stack([Q + Q.T, D - D.T]), "the entry")

        yield self._positive("D >= 0", [D]) if D.any() else Result(DIRECTION, "D = 0", "proved")
        size = self.target.size
        beside = jax.grad(lambda z: dynamics.H(z) - self.target.flat_potential(z[:size]))
        slopes = evaluated(self.reader, beside, place)[:size]
        found = self._vanishes(
            MARGINAL, "H(z) - U(x) is a function of the auxiliary variables alone", slopes, "the slope"
        )
        yield found if found.holds else replace(found, outcome="undecided")

    def _settled(self, rule: Bandwidth) -> Result:
        """Decide if the multipliers of a transport solve their equations, at a few points of this region."""

        def residuals(flat: jax.Array) -> jax.Array:
            rows = flatten(self.traced.unravel(flat))
            return residuals_of(rows, width_of(rule, rows))

        values = evaluated(self.reader, residuals, self.z)
        points = itertools.islice(points_with(self.ring, self.reader.path.assumed), POINTS)
        sizes = [max(abs(value(p)) for p in values) for value in points]
        if not sizes:
            return Result(MULTIPLIERS, EQUATION_OF_MULTIPLIERS, "undecided", "no point of the region was found")
        if max(sizes) > SETTLED:
            return Result(MULTIPLIERS, EQUATION_OF_MULTIPLIERS, "violated", f"off by {float(max(sizes)):.2g}")
        return Result(MULTIPLIERS, EQUATION_OF_MULTIPLIERS, "verified", f"to {SETTLED:.0e}")

    def _closed(self, after: list[Polynomial]) -> Result:
        """Decide that nothing but the particles decides where they move. Raises Unreadable if draws do."""
        known = frozenset().union(*(p.numbers() for p in self.z))
        atoms = frozenset().union(*(p.atoms() for p in after))
        if any(p.has("draw") for p in after):
            raise Unreadable("interacting particles that depend on draws")
        hidden = any(isinstance(self.ring.generators[n], Coordinate) for n in atoms - known)
        reason = "hidden state: numbers beside the particles" if hidden else ""
        return Result(CLOSED, "z' depends on z alone", "undecided" if hidden else "proved", reason)

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
        yield self._vanishes(METHOD, "xi is that of the declared kernel, for all pairs", gap, "the velocity of a pair")

        diagonal = evaluated(self.reader, self._diagonal(kernel), self.z)
        yield self._positive("k(x, x) > 0", [[[p]] for p in diagonal])

    def _diagonal(self, claim: SteinVelocity | RiemannianVelocity) -> Callable[[jax.Array], jax.Array]:
        """z -> k(x_i, x_i), (M,)."""

        def of(flat: jax.Array) -> jax.Array:
            rows = flatten(self.traced.unravel(flat))
            return jax.vmap(lambda x: claim.kernel(rows)(x, x))(rows)

        return of

    def _positive(self, equation: str, matrices: Any) -> Result:
        """Decide that symmetric matrices have no negative eigenvalue: at a few points, unless they are constant."""
        constant = all(p.rational is not None for p in np.ravel(np.array(matrices, object)))
        for attempt in range(POINTS):
            value = at_random(self.ring, str(attempt))
            numbers = np.array([[[float(value(p)) for p in row] for row in matrix] for matrix in matrices])
            if np.linalg.eigvalsh(numbers).min() < -NEGATIVE * np.abs(numbers).max() or not numbers.any():
                return Result(DIRECTION, equation, "undecided", "the target may repel")
        return Result(DIRECTION, equation, "proved" if constant else "verified")

    def _vanishes(self, statement: str, equation: str, gap: Any, name: str) -> Result:
        places = ["".join(f" {i + 1}" for i in place) for place in np.ndindex(*gap.shape)]
        return of_polynomials(statement, equation, zip((name + place for place in places), gap.ravel(), strict=True))

    def _single(self) -> list[Any]:
        """xi(x_i, x_j) for each i, (M, d) over j: the declared velocity with all the weight on particle i."""
        if self.traced.size != self.traced.dimension:
            raise Unreadable("interacting particles with auxiliary variables")
        claim = self.sampler.claims[ParticleVelocity]
        mass = lambda i: [self.ring.constant(int(k == i)) for k in range(COUNT)]
        return [self._velocity(claim, mass(i)) for i in range(COUNT)]

    def _rows(self, z: list[Polynomial]) -> Any:
        """z, as the pytree lays it out, as rows (M, d)."""
        return evaluated(self.reader, lambda flat: flatten(self.traced.unravel(flat)), z)

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
        a = [[-p.derivative(_number(slope)) for slope in slopes] for p in velocity]
        b = [p + self.ring.sum(map(_product, row, slopes)) for p, row in zip(velocity, a, strict=True)]
        parts = Pair(a, b).entries
        if any(isinstance(self.ring.generators[n], Jet) for p in parts for n in p.atoms()):
            raise Unreadable("a velocity that is not linear in the gradient at the particle that gives it")
        others = [_number(x) for k in range(COUNT) if k not in (i, j) for x in self.x[k]]
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
            divergence = self.ring.sum(p.derivative(_number(x)) for p, x in zip(row, self.x[i], strict=True))
            yield f"the velocity of particle {j + 1} by {i + 1}, coordinate {c + 1}", rest - divergence

    def _alike(self, pairs: Mapping[tuple[int, int], Pair]) -> Iterator[Named]:
        """a and b of each pair less those of the first one at the place of the pair."""
        (i, j), first = next(iter(pairs.items()))
        old = [_number(x) for x in (*self.x[i], *self.x[j])]
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


def _generator(x: Polynomial) -> Generator | None:
    """The generator that a polynomial is; None if it is anything else."""
    terms = list(x.terms())
    single = len(terms) == 1 and terms[0][1] == 1 and [exponent for _, exponent in terms[0][0]] == [1]
    return x.ring.generators[_number(x)] if single else None


def _number(x: Polynomial) -> int:
    """The number of the generator that a polynomial is."""
    (number,) = x.numbers()
    return number


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    return a * b
