"""The keys of all draws of a function, exactly: which raw key each draw consumes, for given keys of a step.

The tape takes draws as independent and new in every step. They are if no two of them consume the same key, if each key
follows from the key of the step, and if two keys of a step never lead to the same one.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs.evaluation import evaluated
from sgmcmc_verification.checks.tracing.noise_tape import DrawKind, Reader, evaluate, is_key, short_place, source_place


class Consumed(NamedTuple):
    """One call that consumes keys.

    Attributes:
        name: of the law or of the primitive.
        place: file and line of the call.
        words: (K, m, w), the raw keys of m draws (several under vmap) for each of K keys of the step.
    """

    name: str
    place: str
    words: np.ndarray


class _Lineage(Reader):
    """A tape that draws as the program does, and keeps the keys."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []
        self.keys: list[jax.Array] = []
        self.unfollowed: list[str] = []

    def draw(self, kind: DrawKind, equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        self.names.append((kind, short_place(source_place(equation))))
        self.keys.append(_raw(inputs[0]))
        return core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        if inputs and is_key(inputs[0]) and primitive.startswith("random_"):
            self.names.append((primitive, ""))
            self.keys.append(_raw(inputs[0]))
        else:
            self.unfollowed.append(primitive)


def _raw(keys: Any) -> jax.Array:
    """Words (m, w) of keys of any shape."""
    data = jax.random.key_data(keys) if is_key(keys) else jnp.asarray(keys)
    return data.reshape(-1, data.shape[-1])


def consumed_keys(function: Callable[[jax.Array], Any], keys: jax.Array) -> tuple[list[Consumed], tuple[str, ...]]:
    """The calls of `function(key)` that consume keys, and the primitives whose keys cannot be followed.

    Args:
        function: of one typed key; traced once.
        keys: (K,), typed, for which the words are evaluated.
    """
    closed = jax.make_jaxpr(function)(keys[0])
    unfollowed: list[str] = []
    names: list[tuple[str, str]] = []

    def words(key: jax.Array) -> list[jax.Array]:
        tape = _Lineage()
        evaluate(closed.jaxpr, closed.consts, [key], tape)
        names[:], unfollowed[:] = tape.names, tape.unfollowed
        return tape.keys  # all else is dead code, which costs little

    found = evaluated(jax.vmap(words))(keys)
    calls = [Consumed(*name, np.asarray(value)) for name, value in zip(names, found, strict=True)]
    return calls, tuple(dict.fromkeys(unfollowed))
