"""A sampler that moves a part of its position, as a sampler of that part alone.

The law that it keeps is that of the part, given the rest. So any target can be the law of the part: the whole position
x holds a point of it and a rest r, which gets numbers r_0 of its own, and the potential that the sampler meets is

    U(x) = U_part(part + mean(r - r_0)) + |r - r_0|^2 / 2

which is that of the target where the rest is where it was, and another one where the sampler moves it, or reads it as
something else. Gradients, potentials and covariances follow from those of any estimator on the target.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.samplers.interface.aliases import Estimator, EstimatorState, Key, Position, Scalar, State, Tree
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.claims import Moves
from sgmcmc_verification.samplers.interface.first_state import first_state
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimate, Need, Sampler
from sgmcmc_verification.samplers.interface.whole_state import places_of

INSIDE: dict[str, Tree] = {"mode": "promise_in_bounds", "wrap_negative_indices": False}
"""Of places that are known: no branch of the program asks where they are."""


class NoSuchPart(ValueError):
    """No whole position has a part of the shape that is asked for."""


class Leaf(NamedTuple):
    """Origin of the numbers of one leaf of the whole position.

    Attributes:
        shape: of the leaf.
        part: places (k,) in the leaf, flat, of numbers of the part.
        numbers: their places (k,) among the numbers of the part.
        rest: places in the leaf of the numbers of the rest.
        fixed: the leaf with r_0 in the rest.
    """

    shape: tuple[int, ...]
    part: np.ndarray
    numbers: np.ndarray
    rest: np.ndarray
    fixed: np.ndarray


@dataclass(frozen=True, eq=False)
class Embedding:
    """The part of a position in the whole.

    Attributes:
        whole: structure of the whole position.
        leaves: of it.
        example: a part; the shapes of its leaves.
        xp: `jax.numpy`, or NumPy for a sampler of the host.
    """

    whole: Tree
    leaves: tuple[Leaf, ...]
    example: Position
    xp: ModuleType

    def join(self, part: Position) -> Position:
        """The whole position with a part, and r_0 in the rest."""
        return self._put(part, lambda leaf: leaf.fixed)

    def split(self, position: Position) -> tuple[Position, tuple[Tree, ...]]:
        """The part of a whole position, and r - r_0 of each leaf that has numbers of the rest."""
        flat = [self.xp.reshape(x, -1) for x in jax.tree.leaves(position)]
        pairs = list(zip(flat, self.leaves, strict=True))
        pieces = [self._of(x, leaf.part) for x, leaf in pairs if leaf.part.size]
        order = np.argsort(np.concatenate([leaf.numbers for leaf in self.leaves]))
        gathered = self._of(pieces[0] if len(pieces) == 1 else self.xp.concatenate(pieces), order)
        rests = tuple(self._of(x, leaf.rest) - leaf.fixed[leaf.rest] for x, leaf in pairs if leaf.rest.size)
        return self._shaped(gathered), rests

    def lift(self, gradient: Position, rests: tuple[Tree, ...]) -> Position:
        """grad U of the whole from grad U_part and r - r_0."""
        total = sum(self.xp.sum(g) for g in jax.tree.leaves(gradient)) / self.count
        values = iter(rests)
        along = [total + next(values) if leaf.rest.size else None for leaf in self.leaves]
        lifted = jax.tree.leaves(self._put(gradient, lambda leaf: 0 * leaf.fixed))
        return jax.tree.unflatten(
            self.whole, [self._set(x, leaf, r) for x, leaf, r in zip(lifted, self.leaves, along, strict=True)]
        )

    def seen(self, part: Position, rests: tuple[Tree, ...]) -> Position:
        """The point of the target at which the sampler is: the part, moved with the rest."""
        shift = sum(self.xp.sum(rest) for rest in rests) / self.count
        return jax.tree.map(lambda x: x + shift, part)

    @property
    def count(self) -> int:
        """Numbers of the rest."""
        return sum(leaf.rest.size for leaf in self.leaves)

    def jacobian(self) -> np.ndarray:
        """d seen / d whole, (m, n)."""
        rows = sum(leaf.part.size for leaf in self.leaves)
        blocks = []
        for leaf in self.leaves:
            block = np.zeros((rows, leaf.fixed.size))
            block[leaf.numbers, leaf.part] = 1
            block[:, leaf.rest] = 1 / self.count
            blocks.append(block)
        return np.concatenate(blocks, axis=1)

    def _put(self, part: Position, rest: Callable[[Leaf], np.ndarray]) -> Position:
        flat = [self.xp.reshape(x, -1) for x in jax.tree.leaves(part)]
        numbers = flat[0] if len(flat) == 1 else self.xp.concatenate(flat)
        made = []
        for leaf in self.leaves:
            value = self.xp.asarray(rest(leaf), numbers.dtype)
            if leaf.part.size == value.size:
                value = self._of(numbers, leaf.numbers)
            elif leaf.part.size:
                value = self._at(value, leaf.part, self._of(numbers, leaf.numbers))
            made.append(self.xp.reshape(value, leaf.shape))
        return jax.tree.unflatten(self.whole, made)

    def _set(self, x: Tree, leaf: Leaf, values: Tree) -> Tree:
        flat = self.xp.reshape(x, -1)
        return x if values is None else self.xp.reshape(self._at(flat, leaf.rest, values), leaf.shape)

    def _of(self, flat: Tree, places: np.ndarray) -> Tree:
        if np.array_equal(places, np.arange(np.size(flat))):
            return flat
        return flat.at[places].get(**INSIDE) if self.xp is jnp else flat[places]

    def _at(self, flat: Tree, places: np.ndarray, values: Tree) -> Tree:
        if self.xp is jnp:
            return flat.at[places].set(values, **INSIDE)
        flat = np.array(flat)
        flat[places] = values
        return flat

    def _shaped(self, flat: Tree) -> Position:
        leaves, structure = jax.tree.flatten(self.example)
        ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
        pieces = self.xp.split(flat, ends) if len(leaves) > 1 else [flat]
        return jax.tree.unflatten(
            structure, [self.xp.reshape(x, np.shape(leaf)) for x, leaf in zip(pieces, leaves, strict=True)]
        )


def embedding(claim: Moves, example: Position, host: bool) -> Embedding:
    """Place of a part shaped like `example` in the whole position, found by its numbers.

    Raises:
        NoSuchPart: if no whole position has such a part, or a number of it is missing.
        ValueError: if a number of it is changed, or there is no rest.
    """
    leaves, structure = jax.tree.flatten(example)
    sizes = [int(np.size(leaf)) for leaf in leaves]
    ends, make = np.cumsum(sizes), np.asarray if host else jnp.asarray
    dtype = np.result_type(*[np.asarray(leaf).dtype for leaf in leaves])

    def marked(sign: int) -> Position:
        numbers = zip(sizes, ends, leaves, strict=True)
        values = [sign * np.arange(end - size + 1, end + 1).reshape(np.shape(x)) for size, end, x in numbers]
        return claim.whole(jax.tree.unflatten(structure, [make(value, dtype) for value in values]))

    try:
        with jax.ensure_compile_time_eval():
            (there, whole), (back, _) = (jax.tree.flatten(marked(sign)) for sign in (1, -1))
            pairs = [(np.asarray(a, float), np.asarray(b, float)) for a, b in zip(there, back, strict=True)]
    except Exception as error:
        raise NoSuchPart(f"Moves.whole: makes no position of a part like {jax.tree.map(np.shape, example)}") from error
    found, seen = [], []
    for a, b in pairs:
        values, opposite = a.ravel(), b.ravel()
        moves = (values == -opposite) & (values >= 1)
        if not np.array_equal(values[~moves], opposite[~moves]):
            raise ValueError("Moves.whole: the numbers of the part must stand in the whole as they are")
        part, rest = np.flatnonzero(moves), np.flatnonzero(~moves)
        fixed = np.zeros(values.size, dtype)
        fixed[rest] = 1 + 0.5 * np.cos(2.3 * (rest + len(found)))
        numbers = values[part].astype(int) - 1
        seen += numbers.tolist()
        found.append(Leaf(a.shape, part, numbers, rest, fixed))
    if sorted(seen) != list(range(int(ends[-1]))):
        raise NoSuchPart("Moves.whole: each number of the part must stand in one place of the whole")
    if not any(leaf.rest.size for leaf in found):
        raise ValueError("Moves.whole: there is nothing beside the part; a sampler that moves all claims no part")
    return Embedding(whole, tuple(found), example, np if host else jnp)


@dataclass(frozen=True, eq=False)
class Lifted:
    """Estimates at whole positions from an estimator on the target of the part."""

    _inner: Estimator
    _embedding: Embedding
    backend: str

    def init(self, key: Key, position: Position) -> EstimatorState:
        """First state of the estimator."""
        return self._inner.init(key, self._embedding.seen(*self._embedding.split(position)))

    def estimate(self, key: Key, estate: EstimatorState, position: Position) -> tuple[Estimate, EstimatorState]:
        """Estimate at a whole position, and the next state of the estimator."""
        whole, xp = self._embedding, self._embedding.xp
        part, rests = whole.split(position)
        found, estate = self._inner.estimate(key, estate, whole.seen(part, rests))
        gradient = None if found.gradient is None else whole.lift(found.gradient, rests)
        energy = sum(xp.sum(rest**2) for rest in rests) / 2
        potential = None if found.potential is None else found.potential + energy
        covariance = found.covariance
        if covariance is not None:
            slope = xp.asarray(whole.jacobian())
            covariance = slope.T @ covariance @ slope
        return Estimate(gradient, potential, covariance, found.statistics), estate


class PartState(NamedTuple):
    """State of a sampler of a part.

    Attributes:
        position: the part.
        others: leaves of the whole sampler's state that are not its position.
        rest: r - r_0 after the last step, (k,); the next one starts from r_0.
    """

    position: Position
    others: tuple[Tree, ...]
    rest: Tree


@dataclass(frozen=True, eq=False)
class OnPart(Completed):
    """A sampler of a part; see `Completed`.

    Attributes:
        rest: state -> r - r_0 after the last step.
    """

    rest: Callable[[PartState], Tree] = operator.attrgetter("rest")


def on_part(sampler: Sampler, example: Position, estimator: Estimator) -> Sampler:
    """The sampler of the part that a sampler claims to move; itself if it claims none.

    Args:
        sampler: of whole positions.
        example: a position of the target, which becomes the law of the part.
        estimator: of the gradients of that target, to see a state.

    Raises:
        ValueError: if the claim does not fit, or the sampler computes its position from its state.
    """
    claim = sampler.claims.get(Moves)
    if claim is None or isinstance(sampler, OnPart):
        return sampler
    host = on_host(sampler)
    where = embedding(claim, example, host)
    lifted = lambda inner: Lifted(inner, where, "host" if host else "jax")
    key = np.random.default_rng(0) if host else jax.random.key(0)
    leaves, structure = jax.tree.flatten(first_state(sampler, key, where.join(example), lifted(estimator)))
    places = places_of(sampler, structure, leaves)
    if places is None:
        raise ValueError("Moves: the whole position has to stand in the state as it is")

    def read(state: State) -> PartState:
        part, rests = where.split(sampler.position(state))
        others = tuple(x for i, x in enumerate(jax.tree.leaves(state)) if i not in places)
        return PartState(part, others, where.xp.concatenate(rests))

    def whole(state: PartState) -> State:
        found = dict(zip(places, jax.tree.leaves(where.join(state.position)), strict=True))
        others = iter(state.others)
        return jax.tree.unflatten(structure, [found[i] if i in found else next(others) for i in range(len(leaves))])

    def init(key: Key, position: Position, estimator: Estimator) -> PartState:
        return read(sampler.init(key, where.join(position), lifted(estimator)))

    def step(key: Key, state: PartState, step_size: Scalar, estimator: Estimator) -> PartState:
        return read(sampler.step(key, whole(state), step_size, lifted(estimator)))

    given = (sampler.given if isinstance(sampler, Completed) else {"claims", "needs"}) & {"claims", "needs"}
    position = lambda state: state.position
    parts = {"step": step, "init": init, "position": position, "unpack": position, "pack": init}
    return OnPart(
        **parts,
        needs=cast(frozenset[Need], sampler.needs),
        claims=sampler.claims,
        backend="host" if host else "jax",
        given=frozenset(given | {"init", "position"}),
    )
