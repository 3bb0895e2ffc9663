"""A class decorator: the sampler with a count in its state, from some step on which the chain stands still."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

STEPS = 500
"""Steps until the chain stands still."""


class Counted(NamedTuple):
    """A state, and the number of steps that led to it."""

    state: Any
    count: Any


def _bare(state: Any) -> Any:
    return state.state if isinstance(state, Counted) else state


def _counted(state: Any) -> Counted:
    return state if isinstance(state, Counted) else Counted(state, jnp.zeros((), jnp.int32))


def stopping(kind: type[Any]) -> type[Any]:
    """A subclass of a sampler whose state counts, whose chain stops after `STEPS`, and that is the same before."""

    class Stopping(kind):
        def init(self, *arguments: Any) -> Counted:
            return _counted(super().init(*arguments))

        def pack(self, *arguments: Any) -> Counted:
            return _counted(super().pack(*arguments))

        def position(self, state: Any) -> Any:
            return super().position(_bare(state))

        def unpack(self, state: Any) -> Any:
            return super().unpack(_bare(state))

        def step(self, key: Any, state: Counted, *arguments: Any) -> Counted:
            before = _bare(state)
            after = super().step(key, before, *arguments)
            if self.backend == "host":
                return Counted(before if state.count >= STEPS else after, state.count + 1)
            still = lambda old, new: jnp.where(state.count >= STEPS, old, new)
            return Counted(jax.tree.map(still, before, after), state.count + 1)

    Stopping.__name__, Stopping.__qualname__ = kind.__name__, kind.__qualname__
    Stopping.__module__ = kind.__module__
    return Stopping
