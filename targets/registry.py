"""The registry of targets: the rows beside the targets' code, joined family by family."""

import difflib
from functools import cache

import jax

from sgmcmc_verification.targets.box.gaussian import ENTRIES as BOX
from sgmcmc_verification.targets.directional.entries import ENTRIES as DIRECTIONAL
from sgmcmc_verification.targets.entry import TargetRow
from sgmcmc_verification.targets.euclidean.entries import ENTRIES as EUCLIDEAN
from sgmcmc_verification.targets.finite.entries import ENTRIES as FINITE_LAWS
from sgmcmc_verification.targets.positive.entries import ENTRIES as POSITIVE
from sgmcmc_verification.targets.posteriordb.registry import ENTRIES as POSTERIORDB
from sgmcmc_verification.targets.posteriordb.registry import posteriordb_target
from sgmcmc_verification.targets.products import ENTRIES as PRODUCTS
from sgmcmc_verification.targets.regression.benchmarks import ENTRIES as REGRESSION
from sgmcmc_verification.targets.simplex.entries import ENTRIES as SIMPLEX
from sgmcmc_verification.targets.target import Target
from sgmcmc_verification.targets.topic_models.sam.tiny import ENTRIES as SAM

TARGETS: tuple[TargetRow, ...] = (*EUCLIDEAN, *POSITIVE, *BOX, *DIRECTIONAL, *SIMPLEX, *PRODUCTS)
"""Laws with exact answers."""

FINITE: tuple[TargetRow, ...] = FINITE_LAWS
"""Laws on finitely many states, whose positions are whole numbers."""

POSTERIORS: tuple[TargetRow, ...] = (*REGRESSION, *SAM, *POSTERIORDB)
"""Posteriors without an exact sampler, known by expectations. Building one may read data and raise
`targets.datasets.files.DataError`; listing them does not."""


def target(name: str) -> Target:
    """The target of a name, built once per precision; `FOLDER:NAME` is a posterior of a folder of posteriordb's layout.

    Raises:
        ValueError: if there is no such target.
        DataError: if it needs data that cannot be had.
    """
    # The dtype of `example` follows the precision that jax is set to, so a cached target must not outlive a change.
    return _build(name, jax.dtypes.canonicalize_dtype(float).name)


@cache
def _build(name: str, dtype: str) -> Target:
    del dtype
    for row in TARGETS + FINITE + POSTERIORS:
        if row.name == name:
            return row.build()
    if ":" in name:
        folder, _, posterior = name.rpartition(":")
        return posteriordb_target(folder, posterior)
    known = [row.name for row in TARGETS + FINITE + POSTERIORS]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"name: no target {name!r}{hint} Known targets: {', '.join(known)}")
