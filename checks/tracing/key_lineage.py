"""The keys of all draws of a function, exactly: which raw key each draw consumes, for given keys of a step.

The tape takes draws as independent and new in every step. They are if no two of them consume the same key, if each key
follows from the key of the step, and if two keys of a step never lead to the same one.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.interpreters.partial_eval import dce_jaxpr

from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.tracing.noise_tape import DrawKind, Reader, evaluate, is_key, short_place, source_place


class Consumed(NamedTuple):
    """One call that consumes keys.

    Attributes:
        name: of the law or of the primitive.
        place: file and line of the call.
        words: (K, m, w), the raw keys of m draws (several under vmap) for each of K keys of the step.
        sides: number of each `cond` that it stands in -> number of the branch.
    """

    name: str
    place: str
    words: np.ndarray
    sides: Mapping[int, int]

    def excludes(self, other: "Consumed") -> bool:
        """True for calls in two branches of one `cond`, of which a step makes one at most."""
        return any(other.sides.get(place, branch) != branch for place, branch in self.sides.items())


class _Lineage(Reader):
    """A tape that draws as the program does, and keeps the keys, of all branches."""

    into_branches = True

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []
        self.sides: list[Mapping[int, int]] = []
        self.keys: list[jax.Array] = []
        self.unfollowed: list[str] = []
        self._inside: dict[int, int] = {}
        self._conds = itertools.count()

    def _consumed(self, name: str, place: str, key: Any) -> None:
        self.names.append((name, place))
        self.keys.append(_raw(key))
        self.sides.append(dict(self._inside))

    def alternatives(self, equation: Any, follow: Callable[[Any], None]) -> None:
        cond = next(self._conds)
        for number, branch in enumerate(equation.params["branches"]):
            self._inside[cond] = number
            follow(branch)
        del self._inside[cond]

    def draw(self, kind: DrawKind, equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        self._consumed(kind, short_place(source_place(equation)), inputs[0])
        return core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        if inputs and is_key(inputs[0]) and primitive.startswith("random_"):
            self._consumed(primitive, "", inputs[0])
        else:
            self.unfollowed.append(primitive)


def _raw(keys: Any) -> jax.Array:
    """Words (m, w) of keys of any shape."""
    data = jax.random.key_data(keys) if is_key(keys) else jnp.asarray(keys)
    return data.reshape(-1, data.shape[-1])


def consumed_keys(function: Callable[[jax.Array], Any], keys: jax.Array) -> tuple[list[Consumed], tuple[str, ...]]:
    """The calls of `function(key)` that consume keys, and the primitives whose keys cannot be followed.

    What the value of the function does not depend on is left out: a draw that nobody reads is part of no law.

    Args:
        function: of one typed key; traced once.
        keys: (K,), typed, for which the words are evaluated.
    """
    closed = jax.make_jaxpr(function)(keys[0])
    jaxpr, _ = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    unfollowed: list[str] = []
    names: list[tuple[str, str]] = []
    sides: list[Mapping[int, int]] = []

    def words(key: jax.Array) -> list[jax.Array]:
        tape = _Lineage()
        evaluate(jaxpr, closed.consts, [key], tape)
        names[:], unfollowed[:], sides[:] = tape.names, tape.unfollowed, tape.sides
        return tape.keys  # all else is dead code, which costs little

    found = evaluated(jax.vmap(words))(keys)
    calls = [Consumed(*name, np.asarray(value), at) for name, value, at in zip(names, found, sides, strict=True)]
    return calls, tuple(dict.fromkeys(unfollowed))
