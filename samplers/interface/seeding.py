"""Generators with chosen draws, as far as other generators are made from them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import numpy as np
from jax.typing import ArrayLike

WIDE = 2**31 - 1
"""Width of a range of whole numbers of which one is drawn as the seed of another generator, and for nothing else."""
FIRST_SEED = 1_500_450_271
"""The first seed of a step: no program has such a constant."""
APART = 1000
"""Distance of one seed from the next: a step may count generators on from a seed."""


class Seeding:
    """The part of a generator with chosen draws that hands out seeds of other generators, where those are followed.

    Attributes:
        seeds: the seeds of a step; None where nobody follows other generators, and a seed is a draw like any other.
    """

    seeds: list[int] | None = None

    @contextmanager
    def following(self) -> Iterator[list[int]]:
        """A context in which seeds are handed out, as in one around it if there is one; the list of them."""
        before = self.seeds
        self.seeds = [] if before is None else before
        try:
            yield self.seeds
        finally:
            self.seeds = before

    def spawn(self, n_children: int) -> list[Self]:
        """Generators that draw in turn from this one: their draws are independent of one another all the same."""
        return [self] * n_children

    def new_seed(self, low: ArrayLike, high: ArrayLike | None, size: object) -> int | None:
        """A seed that no other call is given; None for what is no seed, or is not to be one."""
        low, high = (0, low) if high is None else (low, high)
        if self.seeds is None or size is not None or np.ndim(low) or np.ndim(high):
            return None
        first = int(np.asarray(low))
        if int(np.asarray(high)) - first < WIDE:
            return None
        seed = first + FIRST_SEED + APART * len(self.seeds)
        self.seeds.append(seed)
        return seed
