"""The programs of a sampler: how it packs z into a state, its step, and what it reads out of a state."""

import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.checks.programs.trees import unraveller
from sgmcmc_verification.checks.proof.draws import History
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.potential import Coordinate
from sgmcmc_verification.checks.proof.reader.calls import without_dead_code
from sgmcmc_verification.checks.proof.reader.interpreter import Reader, least, unknown
from sgmcmc_verification.checks.proof.reader.values import Array, is_discrete, is_key_type, objects, scalar
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Series
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.targets.target import Target


@dataclass(frozen=True, eq=False)
class Stepped:
    """One step from z.

    Attributes:
        z: the full variable after the step.
        position: the position that is read out of the new state.
        start: the position that is read out of the state before the step.
        before: all inexact numbers of the state before the step.
        after: those of the state after it.
        repacked: those of the state that `pack` makes of the new z, with another key.
    """

    z: list[Series]
    position: list[Series]
    start: list[Series]
    before: list[Series]
    after: list[Series]
    repacked: list[Series]


class Traced:
    """A sampler as jaxprs.

    Args:
        sampler: to trace.
        estimator: of the gradient.
        target: with the potential.

    Raises:
        Unreadable: if it has no jaxpr.

    Attributes:
        size: number of coordinates of z.
        dimension: number of coordinates of a position.
    """

    def __init__(self, sampler: Sampler, estimator: Estimator, target: Target) -> None:
        if sampler.backend != "jax":
            raise Unreadable("a sampler that computes outside of JAX")
        key = jax.ShapeDtypeStruct((), jax.eval_shape(lambda: jax.random.key(0)).dtype)
        step_size = jax.ShapeDtypeStruct((), jnp.float64)
        example = jax.eval_shape(lambda: target.example)
        state = jax.eval_shape(lambda k, x: sampler.init(k, x, estimator), key, example)
        tree = jax.eval_shape(sampler.unpack, state)
        self.size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))
        self.dimension = target.size
        self.unravel = unraveller(tree)
        structure, flat = jax.tree.structure(state), jax.ShapeDtypeStruct((self.size,), jnp.float64)

        def pack(k: Any, z: Any) -> list[Any]:
            return jax.tree.leaves(sampler.pack(k, self.unravel(z), estimator))

        def readout(new: Any) -> tuple[Any, Any]:
            return ravel_pytree(sampler.unpack(new))[0], ravel_pytree(sampler.position(new))[0]

        def step(k: Any, again: Any, h: Any, *leaves: Any) -> Any:
            new = sampler.step(k, jax.tree.unflatten(structure, leaves), h, estimator)
            z, position = readout(new)
            return z, position, jax.tree.leaves(new), pack(again, z)

        self._pack = jax.make_jaxpr(pack)(key, flat)
        leaves = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self._pack.out_avals]
        program, shape = jax.make_jaxpr(step, return_shape=True)(key, key, step_size, *leaves)
        self._step = without_dead_code(program)
        self._structure = jax.tree.structure(shape)
        self._position = jax.make_jaxpr(lambda *parts: readout(jax.tree.unflatten(structure, parts))[1])(*leaves)
        self._variable = lambda *parts: readout(jax.tree.unflatten(structure, parts))[0]
        self._leaves = leaves
        self._types = [leaf.dtype for leaf in leaves]
        self._shapes = [leaf.shape for leaf in leaves]
        repack = lambda k, *parts: pack(k, readout(jax.tree.unflatten(structure, parts))[0])
        self._repack = jax.make_jaxpr(repack)(key, *leaves)

    @classmethod
    def of(cls, sampler: Sampler, estimator: Estimator, target: Target) -> "Traced":
        """The programs of a sampler, traced once for the statements of a proof. Raises Unreadable if it has none."""
        for *those, found in _LAST:
            if all(a is b for a, b in zip(those, (sampler, estimator, target), strict=True)):
                return found
        _LAST.append((sampler, estimator, target, cls(sampler, estimator, target)))
        return _LAST[-1][-1]

    @property
    def keeps_keys(self) -> bool:
        """True if a random key is in the state."""
        return any(map(is_key_type, self._types))

    def packed(self, reader: Reader, z: Sequence[Series]) -> list[Any]:
        """The state of z; integers of a state may be anything after a few steps, so they are unknown.

        Those that a step does not make smaller are at least what they are at first; `stepped` sees to that.
        """
        leaves = reader.closed(self._pack, [scalar(History("pack")), objects(list(z), (self.size,))])
        return [
            unknown(aval, least(value)) if is_discrete(aval.dtype) else value
            for value, aval in zip(leaves, self._pack.out_avals, strict=True)
        ]

    def repacked(self, reader: Reader, leaves: Sequence[Any]) -> list[Series]:
        """The inexact numbers of the state that is packed from the z of a state."""
        return self.inexact(reader, reader.closed(self._repack, [scalar(History("repack")), *leaves]))

    def any_state(self, reader: Reader) -> list[Any]:
        """A state of which nothing is known: a symbol for every inexact number."""
        leaves, count = [], itertools.count()
        for shape, dtype in zip(self._shapes, self._types, strict=True):
            size = math.prod(shape)
            if is_discrete(dtype):
                leaves.append(unknown(jax.ShapeDtypeStruct(shape, dtype)))
            elif is_key_type(dtype):
                leaves.append(objects([History(f"of the state {next(count)}") for _ in range(size)], shape))
            else:
                symbols = [Coordinate(f"state {i}", i) for i in itertools.islice(count, size)]
                leaves.append(objects([reader.space.lift(reader.ring.generator(g)) for g in symbols], shape))
        return leaves

    def stepped(self, reader: Reader, leaves: Sequence[Any], step_size: Series) -> Stepped:
        """One step from a state. Raises Unreadable if an integer that enters the arithmetic may go down."""
        keys = scalar(History("step")), scalar(History("repack"))
        out = reader.closed(self._step, [*keys, scalar(step_size), *leaves])
        z, position, after, repacked = jax.tree.unflatten(self._structure, out)
        if reader.has_counters:
            pairs = zip(leaves, after, self._types, strict=True)
            integers = [(least(a), least(b)) for a, b, dtype in pairs if is_discrete(dtype) and dtype.kind != "b"]
            if any(a is not None and (b is None or b < a) for a, b in integers):
                raise Unreadable("a counter of the state in the arithmetic, which may go down")
        flat = lambda value: list(reader.symbols(value).ravel())
        return Stepped(
            flat(z),
            flat(position),
            self.position_of(reader, leaves),
            self.inexact(reader, leaves),
            self.inexact(reader, after),
            self.inexact(reader, repacked),
        )

    def variable_of(self, reader: Reader, leaves: Sequence[Any]) -> list[Series]:
        """z of a state."""
        (z,) = reader.closed(jax.make_jaxpr(self._variable)(*self._leaves), leaves)
        return list(reader.symbols(z).ravel())

    def position_of(self, reader: Reader, leaves: Sequence[Any]) -> list[Series]:
        """The position that is read out of a state."""
        (position,) = reader.closed(self._position, leaves)
        return list(reader.symbols(position).ravel())

    def moved(self, reader: Reader, leaves: Sequence[Any], step_size: Series) -> list[Series]:
        """z after one step from a state, and nothing else of the new state."""
        keys = scalar(History("step")), scalar(History("repack"))
        (z,) = reader.closed(without_dead_code(self._step, 1), [*keys, scalar(step_size), *leaves])
        return list(reader.symbols(z).ravel())

    def inexact(self, reader: Reader, leaves: Sequence[Any]) -> list[Series]:
        """The inexact numbers of a state in one list."""
        pairs = zip(leaves, self._types, strict=True)
        kept = [reader.symbols(leaf) for leaf, dtype in pairs if not is_discrete(dtype) and not is_key_type(dtype)]
        return [entry for leaf in kept for entry in leaf.ravel()]

    def with_inexact(self, leaves: Sequence[Any], entries: Sequence[Series]) -> list[Any]:
        """A state with other inexact numbers."""
        left, new = list(entries), []
        for leaf, dtype in zip(leaves, self._types, strict=True):
            if is_discrete(dtype) or is_key_type(dtype):
                new.append(leaf)
            else:
                size = int(np.size(leaf))
                new.append(objects(left[:size], np.shape(leaf)))
                left = left[size:]
        return new


_LAST: deque[tuple[Sampler, Estimator, Target, Traced]] = deque(maxlen=2)
"""What was traced last, for the statements of one proof, which ask for the same."""


def places_in(z: Sequence[Polynomial], position: Sequence[Series]) -> tuple[int, ...] | None:
    """The places in z of the numbers of a position; None if one of them is not there."""
    found = [next((i for i, p in enumerate(z) if a.is_constant and a.constant_term == p), None) for a in position]
    return None if None in found else tuple(i for i in found if i is not None)


def evaluated(reader: Reader, function: Callable[[Any], Any], z: Sequence[Polynomial]) -> Array:
    """A function of a flat vector (n,) at polynomials, an array of polynomials."""
    program = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((len(z),), jnp.float64))
    (out,) = reader.closed(program, [objects([reader.space.lift(p) for p in z], (len(z),))])
    array = reader.symbols(out)
    return objects([entry.constant_term for entry in array.ravel()], array.shape)
