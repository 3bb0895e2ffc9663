"""The states of an estimator with a memory: a table of gradients, a snapshot of the chain, sums over the data there.

A gradient that is unbiased at the first state of its estimator need not be so at later ones. What is decided about an
estimator is decided on a *family* of states E = {e(s)}, with a symbol for each of its parameters s, such that

    init(x) is in E for every x,    estimate(key, e, x) leaves a state in E for every e in E, every x and every batch,

which is an induction over all runs. Two kinds of families are tried:

    anchored    e(a) = init(a) for any point a: a snapshot, or a centre that is never moved
    linear      any numbers with the affine relations that hold for init(a) at every a and survive each batch:
                a table of gradients whose sum is kept beside it

Integers and flags of a state, such as its age, may be anything. Whatever is shown with symbols s holds in every run;
what fails with them may fail at states that no run reaches, so that a refutation takes states of short runs instead.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.proof.draws import History
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.growth import grows
from sgmcmc_verification.checks.proof.potential import MEMORY, Coordinate, uninterpreted
from sgmcmc_verification.checks.proof.reader.interpreter import Reader, unknown
from sgmcmc_verification.checks.proof.reader.paths import Path, every_path
from sgmcmc_verification.checks.proof.reader.primitives import new_reader
from sgmcmc_verification.checks.proof.reader.values import is_discrete, is_key_type, objects, scalar
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Space
from sgmcmc_verification.checks.proof.zero import is_zero
from sgmcmc_verification.samplers.interface.sampler import Estimate, Estimator
from sgmcmc_verification.targets.target import Target

Vector = list[Polynomial]


class Estimated(NamedTuple):
    """One estimate on one path.

    Attributes:
        gradient: flat.
        covariance: that is reported, rows of polynomials; empty if none is.
        after: the inexact numbers of the state that it leaves.
    """

    gradient: Vector
    covariance: list[Vector]
    after: Vector


@dataclass(frozen=True, eq=False)
class Family:
    """A family of states that holds all those of a run.

    Attributes:
        size: number of parameters.
        state: parameters (size,) -> state.
        words: for readers.
    """

    size: int
    state: Callable[[jax.Array], Any]
    words: str


@dataclass(eq=False)
class Estimation:
    """The programs of an estimator, and what they give at symbols.

    Args:
        estimator: to read.
        target: with an uninterpreted potential and uninterpreted terms.

    Attributes:
        notes: what was noted while reading.
    """

    estimator: Estimator
    target: Target
    notes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ring = Ring()
        self.space = Space(self.ring, 0)
        flat = jax.ShapeDtypeStruct((self.target.size,), jnp.float64)
        key = jax.ShapeDtypeStruct((), jax.eval_shape(lambda: jax.random.key(0)).dtype)
        self._init, shape = jax.make_jaxpr(self.initial, return_shape=True)(key, flat)
        leaves, self.structure = jax.tree.flatten(shape)
        self.leaves = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in leaves]

        def estimate(k: Any, x: Any, *parts: Any) -> Any:
            state = jax.tree.unflatten(self.structure, parts)
            found, after = self.estimator.estimate(k, state, self.target.unravel(x))
            covariance = () if found.covariance is None else jnp.asarray(found.covariance)
            return ravel_pytree(found.gradient)[0], covariance, jax.tree.leaves(after)

        self._estimate, shape = jax.make_jaxpr(estimate, return_shape=True)(key, flat, *self.leaves)
        self._outputs = jax.tree.structure(shape)
        self._after = [(leaf.shape, leaf.dtype) for leaf in shape[2]]

    def initial(self, key: Any, x: Any) -> Any:
        """The first state at a flat position."""
        return self.estimator.init(key, self.target.unravel(x))

    @property
    def remembers(self) -> bool:
        """True if there are numbers in the state."""
        return any(not is_discrete(leaf.dtype) and not is_key_type(leaf.dtype) for leaf in self.leaves)

    def point(self, name: str) -> Vector:
        """A position of symbols."""
        positive = self.target.manifold.is_positive
        symbols = [Coordinate(f"{name}{i + 1}", i, positive) for i in range(self.target.size)]
        return [self.ring.generator(symbol) for symbol in symbols]

    def first(self, x: Vector) -> Vector:
        """The inexact numbers of the first state at a position. Raises Unreadable if they are drawn."""
        reader = new_reader(self.space)
        out = reader.closed(self._init, [scalar(History("first")), self._flat(x)])
        found = self._inexact(reader, out, [leaf.dtype for leaf in self.leaves])
        if any(p.has("draw") for p in found):
            raise Unreadable("a first state of the estimator that is drawn")
        return found

    def estimates(self, state: Vector, x: Vector) -> Iterator[tuple[Path, Estimated]]:
        """The estimate at a position from a state, on every path: all batches, and all that integers may be."""

        def run(path: Path) -> Estimated:
            reader = new_reader(self.space, path)
            args = [scalar(History("estimate")), self._flat(x), *self._state(state)]
            gradient, covariance, after = jax.tree.unflatten(self._outputs, reader.closed(self._estimate, args))
            self.notes |= reader.notes
            if [(np.shape(a), dtype) for a, (_, dtype) in zip(after, self._after, strict=True)] != [
                (leaf.shape, leaf.dtype) for leaf in self.leaves
            ]:
                raise Unreadable("an estimator whose state changes its shape")
            rows = [] if isinstance(covariance, tuple) else [self._constants(reader, row) for row in covariance]
            inexact = self._inexact(reader, after, [leaf.dtype for leaf in self.leaves])
            return Estimated(self._constants(reader, gradient), rows, inexact)

        return every_path(run)

    def _flat(self, x: Vector) -> Any:
        return objects([self.space.lift(p) for p in x], (len(x),))

    def _constants(self, reader: Reader, value: Any) -> Vector:
        return [entry.constant_term for entry in reader.symbols(value).ravel()]

    def _inexact(self, reader: Reader, leaves: Sequence[Any], types: Sequence[Any]) -> Vector:
        kept = [leaf for leaf, dtype in zip(leaves, types, strict=True) if not is_discrete(dtype)]
        return [p for leaf in kept for p in self._constants(reader, leaf)]

    def _state(self, inexact: Vector) -> list[Any]:
        """The leaves of a state with some inexact numbers; its integers may be anything."""
        left, found = [self.space.lift(p) for p in inexact], []
        for leaf in self.leaves:
            if is_discrete(leaf.dtype):
                found.append(unknown(leaf))
            else:
                size = int(np.prod(leaf.shape, dtype=int))
                found.append(objects(left[:size], leaf.shape))
                left = left[size:]
        return found


def family_of(estimation: Estimation) -> tuple[Family, Callable[[str], Vector]]:
    """A family that holds all states of a run, and a map from a name of its parameters to the state with symbols.

    Raises:
        Unreadable: if none of the kinds in the module does.
    """
    if any(is_key_type(leaf.dtype) for leaf in estimation.leaves):
        raise Unreadable("a random key in the state of the estimator")
    if _is_anchored(estimation):
        state = lambda a: estimation.initial(jax.random.key(0), a)
        return Family(estimation.target.size, state, "init(a) for any a"), lambda name: estimation.first(
            estimation.point(name)
        )
    return _linear(estimation)


def _is_anchored(estimation: Estimation) -> bool:
    """True if an estimate from init(a) at x leaves init(a) or init(x), whatever the batch."""
    a, x = estimation.point("a"), estimation.point("x")
    first = estimation.first(a)
    ends = first, estimation.first(x)
    return all(any(_same(found.after, end) for end in ends) for _, found in estimation.estimates(first, x))


def _same(left: Vector, right: Vector) -> bool:
    return all(p == q or is_zero(p - q) for p, q in zip(left, right, strict=True))


Relation = tuple[Fraction, Mapping[int, Fraction]]
"""(c, {j: c_j}): a number is c + sum_j c_j times the free number j."""


def _linear(estimation: Estimation) -> tuple[Family, Callable[[str], Vector]]:
    """Any numbers with the relations that hold at the start and survive each batch."""
    relations = _relations(estimation.first(estimation.point("a")))
    x = estimation.point("x")
    count = len(estimation.first(x))
    for _ in range(count + 1):
        state = lambda name, known=dict(relations): _with_relations(estimation, count, known, name)
        broken = {
            i
            for _, found in estimation.estimates(state("s"), x)
            for i, relation in relations.items()
            if not is_zero(found.after[i] - _applied(estimation.ring, relation, found.after))
        }
        if not broken:
            symbols = {i: p for i, p in enumerate(state("s")) if i not in relations}
            for _, found in estimation.estimates(state("s"), x):
                if grows({i: found.after[i] for i in symbols}, symbols):
                    raise Unreadable("a state of the estimator that may grow without bound")
            return _as_family(estimation, count, relations), state
        relations = {i: relation for i, relation in relations.items() if i not in broken}
    raise Unreadable("relations between the numbers of the estimator's state that no state keeps")


def _relations(entries: Vector) -> dict[int, Relation]:
    """Numbers that are affine combinations of those before them, by elimination over the rationals."""
    found: dict[int, Relation] = {}
    # rows in echelon form: (polynomial, combination of the free numbers and of one, at -1, that it is)
    rows: list[tuple[Polynomial, dict[int, Fraction]]] = []
    ring = entries[0].ring
    for i, p in enumerate([ring.one, *entries], -1):
        left, combination = p, {i: Fraction(1)}
        for row, made_of in rows:
            pivot = next(iter(row.terms()))
            factor = left.coefficient(pivot[0]) / pivot[1]
            if factor:
                left = left - row.scaled(factor)
                for j, c in made_of.items():
                    combination[j] = combination.get(j, Fraction(0)) - factor * c
        if left:
            rows.append((left, combination))
        else:  # p_i + sum of the others = 0
            others = {j: -c for j, c in combination.items() if j not in (i, -1) and c}
            found[i] = -combination.get(-1, Fraction(0)), others
    return found


def _applied(ring: Ring, relation: Relation, entries: Vector) -> Polynomial:
    constant, others = relation
    return ring.sum([ring.constant(constant), *(entries[j].scaled(c) for j, c in others.items())])


def _with_relations(estimation: Estimation, count: int, relations: Mapping[int, Relation], name: str) -> Vector:
    """A state of symbols that obeys the relations."""
    symbols = [estimation.ring.generator(Coordinate(f"{name}{i + 1}", i)) for i in range(count)]
    ring = estimation.ring
    return [_applied(ring, relations[i], symbols) if i in relations else symbols[i] for i in range(count)]


def _as_family(estimation: Estimation, count: int, relations: Mapping[int, Relation]) -> Family:
    free = [i for i in range(count) if i not in relations]
    matrix, constants = np.zeros((count, len(free))), np.zeros(count)
    for i in range(count):
        constant, others = relations.get(i, (Fraction(0), {i: Fraction(1)}))
        constants[i] = float(constant)
        for j, c in others.items():
            matrix[i, free.index(j)] = float(c)

    def state(parameters: jax.Array) -> Any:
        flat, leaves, start = jnp.asarray(matrix) @ parameters + constants, [], 0
        for leaf in estimation.leaves:
            if is_discrete(leaf.dtype):
                leaves.append(jnp.zeros(leaf.shape, leaf.dtype))
            else:
                size = int(np.prod(leaf.shape, dtype=int))
                leaves.append(flat[start : start + size].reshape(leaf.shape).astype(leaf.dtype))
                start += size
        return jax.tree.unflatten(estimation.structure, leaves)

    related = f", {len(relations)} of them a combination of others" if relations else ""
    return Family(len(free), state, f"any {count} numbers{related}")


@dataclass(frozen=True, eq=False)
class Remembering:
    """An estimator at any state of a family: a state stays what it is, as whatever follows it is in the family too.

    Attributes:
        inner: the estimator.
        family: of its states.
    """

    inner: Estimator
    family: Family

    def init(self, key: Any, position: Any) -> Any:
        """The state of the family with a symbol for each parameter."""
        del key
        _count(position)
        nowhere = jnp.zeros(1)
        symbols = [uninterpreted(nowhere, f"{MEMORY} {i + 1}") for i in range(self.family.size)]
        return self.family.state(jnp.stack(symbols) if symbols else jnp.zeros(0))

    def estimate(self, key: Any, estate: Any, position: Any) -> tuple[Estimate, Any]:
        """Estimate at a position, and the same state."""
        _count(position)
        return self.inner.estimate(key, estate, position)[0], estate


def _count(position: Any) -> None:
    """Leave a mark in the program, once for each position: the value of a function of no coordinates."""
    uninterpreted(ravel_pytree(position)[0][:0], "mark")


def require_one_state(visited: Sequence[tuple[Polynomial, ...]], before: int) -> None:
    """Raise Unreadable if more than one state of an estimator, or more than one estimate, is in a step.

    All states have the same symbols here, but not in a run: there they would be different, and hang together.

    Args:
        visited: the points at which functions were asked for.
        before: how many of them by `pack`.
    """
    packed, stepped = (sum(not point for point in part) for part in (visited[:before], visited[before:]))
    # the step ends with a `pack` of its own
    if packed > 1 or stepped > 1 + packed:
        raise Unreadable("several estimates in a step, by an estimator with a memory")


def remembers(estimator: Estimator, target: Target) -> bool:
    """True if there are numbers in the state of an estimator."""
    state = jax.eval_shape(lambda x: estimator.init(jax.random.key(0), x), target.example)
    return any(not is_discrete(leaf.dtype) and not is_key_type(leaf.dtype) for leaf in jax.tree.leaves(state))


def short_runs(estimation: Estimation) -> Iterator[Vector]:
    """States that runs reach: after the first estimate, which is at the point of the start, and after a second one."""
    a, b = estimation.point("a"), estimation.point("b")
    once = [found.after for _, found in estimation.estimates(estimation.first(a), a)]
    yield from once
    for state in once:
        yield from (found.after for _, found in estimation.estimates(state, b))
