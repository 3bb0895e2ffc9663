"""Numbers that a state keeps of walkers beside the position, such as their energies: no part of z, as its own are none.

`init` makes such numbers from a position. What stands beside another walker follows from it in the same way, and is
seen by asking `init` at the place of that walker.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from sgmcmc_verification.samplers.interface.aliases import Position, State

MOST = 32
"""Walkers up to which what stands beside them is looked at: each one of them costs a call of `init`."""


class Slot(NamedTuple):
    """A leaf of a state, or one row of it."""

    leaf: int
    row: int | None = None

    def of(self, leaves: Sequence[ArrayLike]) -> ArrayLike:
        """The numbers at this slot."""
        value = leaves[self.leaf]
        return value if self.row is None else value[self.row]  # type: ignore[index]


class Follower(NamedTuple):
    """Numbers that follow from a walker as others follow from the position.

    Attributes:
        slot: where they stand.
        walker: where the walker stands.
        made: where `init` puts these numbers if the walker is the position.
    """

    slot: Slot
    walker: Slot
    made: Slot


def with_followers(
    leaves: Sequence[ArrayLike], followers: Iterable[Follower], made: Callable[[Position], Sequence[ArrayLike]]
) -> list[ArrayLike]:
    """The leaves of a state with followers computed anew; `made` are the leaves that `init` makes of a position."""
    found, anew = list(leaves), {}
    rows: dict[int, list[ArrayLike]] = {}
    for each in followers:
        if each.walker not in anew:
            anew[each.walker] = made(each.walker.of(leaves))
        value = each.made.of(anew[each.walker])
        if each.slot.row is None:
            found[each.slot.leaf] = value
        else:
            rows.setdefault(each.slot.leaf, []).append(value)
    for leaf, values in rows.items():
        xp = jnp if any(isinstance(value, jax.Array) for value in values) else np
        found[leaf] = xp.stack(values)
    return found


class Beside(NamedTuple):
    """Questions to a state that may hold walkers beside the position.

    Attributes:
        rest: places of the leaves that may be walkers, or be made from them.
        caches: places of the leaves that follow from the position.
        position: state -> position, an array.
        init: number, position -> a state, of draws of that number.
        equal: true for the same numbers up to round-off.
    """

    rest: Sequence[int]
    caches: Sequence[int]
    position: Callable[[State], Position]
    init: Callable[[int, Position], State]
    equal: Callable[[ArrayLike, ArrayLike], bool]

    def followers(self, start: State, visited: Iterable[tuple[int, State]]) -> tuple[Follower, ...]:
        """Whole leaves that follow from walkers in every one of some states, with their numbers; slot by slot."""
        found = self._candidates(jax.tree.leaves(start), np.shape(self.position(start)))
        if not found:
            return ()
        for number, state in visited:
            leaves = jax.tree.leaves(state)
            anew = {w: jax.tree.leaves(self.init(number, w.of(leaves))) for w in {each.walker for each in found}}
            same = [each for each in found if self.equal(each.slot.of(leaves), each.made.of(anew[each.walker]))]
            found = _whole(same, leaves)
            if not found:
                break
        return tuple(sorted({each.slot: each for each in found}.values(), key=_order))

    def _candidates(self, leaves: Sequence[ArrayLike], shape: tuple[int, ...]) -> list[Follower]:
        """Slots that could be a walker and what follows from it: in leaves of their own, or in rows alike."""
        shapes = {i: np.shape(leaves[i]) for i in (*self.rest, *self.caches)}
        walkers = [i for i in self.rest if shapes[i] == shape][:MOST]
        found = [
            Follower(Slot(i), Slot(w), Slot(c))
            for i, c in itertools.product(self.rest, self.caches)
            if shapes[c] == shapes[i]
            for w in walkers
            if w != i
        ]
        stacks = [i for i in self.rest if shapes[i][1:] == shape and 2 <= shapes[i][0] <= MOST]
        for i, w in itertools.product(self.rest, stacks):
            if w == i or shapes[i][:1] != shapes[w][:1]:
                continue
            # the first row is that of the position, whose own stands in a leaf beside if the position does
            makers = [Slot(i, 0), *(Slot(c) for c in self.caches if shapes[c] == shapes[i][1:])]
            found += [Follower(Slot(i, row), Slot(w, row), made) for row in range(shapes[i][0]) for made in makers]
        return found


def _order(follower: Follower) -> tuple[int, int]:
    leaf, row = follower.slot
    return leaf, -1 if row is None else row


def _whole(found: list[Follower], leaves: Sequence[ArrayLike]) -> list[Follower]:
    """Those of leaves all of whose rows are among them, and whose walkers follow from nothing themselves."""
    slots = {each.slot for each in found}

    def complete(slot: Slot) -> bool:
        return slot.row is None or all(Slot(slot.leaf, row) in slots for row in range(np.shape(leaves[slot.leaf])[0]))

    following = {each.slot.leaf for each in found if complete(each.slot)}
    return [each for each in found if each.slot.leaf in following and each.walker.leaf not in following]
