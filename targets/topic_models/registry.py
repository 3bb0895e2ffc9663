"""Posteriors of latent-variable models that are small enough to be enumerated, by name: no density of one shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sgmcmc_verification.targets.numerics.ragged import sparse_rows
from sgmcmc_verification.targets.topic_models.dp_mixture import DPMixture, PartitionPosterior
from sgmcmc_verification.targets.topic_models.lda.tiny import peaked_lda, tiny_lda

USERS = ((2, 0, 1), (3, 0, 0), (0, 2, 0), (0, 1, 2))
"""Visits of four users to three categories."""


@dataclass(frozen=True, eq=False)
class Enumerated:
    """A posterior whose expectations are finite sums.

    Attributes:
        name: of `ENUMERATED`.
        law: what enumerates it: a `TinyLDA` or a `PartitionPosterior`.
        source: how its answers are known.
        curvature: 1: step sizes of such rows are meant as they stand.
        example: stands for a position, of which there is none of one shape.
    """

    name: str
    law: Any
    source: str
    curvature: float = 1.0
    example: float = 0.0


def _partitions(name: str, base: float, concentration: float | None) -> Enumerated:
    law = PartitionPosterior(DPMixture(3, base, concentration), sparse_rows(USERS))
    return Enumerated(name, law, "sum over the 15 partitions of four users")


ENUMERATED: Mapping[str, Callable[[], Enumerated]] = {
    "lda-tiny": lambda: Enumerated("lda-tiny", tiny_lda(), "sum over the 32 topics of five words"),
    "lda-tiny-peaked": lambda: Enumerated("lda-tiny-peaked", peaked_lda(), "sum over the 256 topics of eight words"),
    "dp-tiny": lambda: _partitions("dp-tiny", 0.5, None),
    "dp-tiny-fixed": lambda: _partitions("dp-tiny-fixed", 0.5, 0.8),
    # no Gamma law with a pole or a kink at zero, where Euler's method has no order
    "dp-tiny-smooth": lambda: _partitions("dp-tiny-smooth", 2.5, 3.0),
}
"""By name; alpha of the second and third mixture is fixed."""


@cache
def enumerated(name: str) -> Enumerated:
    """The posterior of a name. Raises KeyError."""
    return ENUMERATED[name]()
