"""Minibatches of documents, as a function of the number of the step: nothing to store, nothing to replay."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sgmcmc_verification.targets.datasets.corpus import Corpus
from sgmcmc_verification.targets.numerics.validation import require_some

_PASS, _POOL, _DRAW = 0, 1, 2
"""Tags that keep the random numbers of the three uses apart."""


@dataclass(frozen=True, eq=False)
class Independent:
    """Minibatch t is drawn uniformly from all documents, independently of the others.

    Args:
        corpus: the documents.
        batch_size: n.
        seed: of the draws.
        replace: with replacement, else a uniform subset.

    Raises:
        ValueError: if `batch_size` does not lie between 1 and the number of documents.
    """

    corpus: Corpus
    batch_size: int
    seed: int
    replace: bool = False

    def __post_init__(self):
        _check(self.corpus, self.batch_size)

    def numbers(self, step: int) -> np.ndarray:
        """The documents of a step (n,)."""
        draw = np.random.default_rng([self.seed, _DRAW, step])
        return draw.choice(len(self.corpus), self.batch_size, replace=self.replace)


@dataclass(frozen=True, eq=False)
class Shuffled:
    """Passes over the documents that read a file in blocks: for a corpus that is larger than memory.

    In each pass the blocks of `block` consecutive documents are put in random order; `pool` blocks at a time are mixed,
    and minibatches are cut from the mixture. So a step reads documents of `pool` places of the file, and the memory is
    that of `pool * block` document numbers. Each document comes once in a pass; a minibatch may end a pass and begin
    the next.

    A minibatch is not a uniform subset: documents of one block come close together, so that neighbours that are alike
    make the gradient noise larger than that of `Independent`; with `block=1` it is a uniform subset.

    Args:
        corpus: the documents.
        batch_size: n.
        seed: of the order.
        block: consecutive documents that are read together.
        pool: blocks that are mixed.

    Raises:
        ValueError: if a number is out of its range.
    """

    corpus: Corpus
    batch_size: int
    seed: int
    block: int = 64
    pool: int = 256
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self):
        _check(self.corpus, self.batch_size)
        require_some(block=self.block, pool=self.pool)

    def numbers(self, step: int) -> np.ndarray:
        """The documents of a step (n,)."""
        start, found = step * self.batch_size, []
        while len(found) < self.batch_size:
            which, place = divmod(start + len(found), len(self.corpus))
            pool, within = divmod(place, self.block * self.pool)
            mixed = self._mixed(which, pool)
            found += mixed[within : within + self.batch_size - len(found)].tolist()
        return np.array(found)

    def _mixed(self, which: int, pool: int) -> np.ndarray:
        """The documents of pool number `pool` of a pass, mixed."""
        if self._cache.get("key") != (which, pool):
            total = len(self.corpus)
            order = self._order(which)
            first = order[pool * self.pool : (pool + 1) * self.pool] * self.block
            numbers = (first[:, None] + np.arange(self.block)).ravel()
            np.random.default_rng([self.seed, _POOL, which, pool]).shuffle(numbers)
            self._cache.update(key=(which, pool), mixed=numbers[numbers < total])
        return self._cache["mixed"]

    def _order(self, which: int) -> np.ndarray:
        """The order of the blocks in a pass; a last block that is not full comes last, so that pools stay equal."""
        if self._cache.get("pass") != which:
            total = len(self.corpus)
            order = np.random.default_rng([self.seed, _PASS, which]).permutation(total // self.block)
            if total % self.block:
                order = np.append(order, total // self.block)
            self._cache.update({"pass": which, "order": order})
        return self._cache["order"]


def _check(corpus: Corpus, batch_size: int) -> None:
    if not 1 <= batch_size <= len(corpus):
        raise ValueError(f"batch_size: must lie between 1 and the number of documents {len(corpus)}, got {batch_size}")
