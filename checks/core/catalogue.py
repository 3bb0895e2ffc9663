"""Targets and rows by their names; a name that is not known is one `BadInput` with the closest ones."""

import difflib
from collections.abc import Sequence
from typing import cast

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.targets.target import Target


def closest(name: str, known: Sequence[str]) -> str:
    """`did you mean 'sgld', 'sgnht'?` or the list of known names if none is close."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "did you mean " + ", ".join(repr(n) for n in near) + "?"
    return "known: " + ", ".join(known)


def find_target(name: str) -> Target:
    """A target of the catalogue, or `FOLDER:NAME`, a posterior of a folder in the layout of posteriordb.

    Raises BadInput with the closest names, or with what its data file lacks.
    """
    from sgmcmc_verification.targets.datasets.files import DataError
    from sgmcmc_verification.targets.registry import FINITE, POSTERIORS, TARGETS, target
    from sgmcmc_verification.targets.topic_models.registry import ENUMERATED, enumerated

    if name in ENUMERATED:
        return cast(Target, enumerated(name))  # for rows of the tier `workload` alone
    known = (*(row.name for row in TARGETS + FINITE + POSTERIORS), *ENUMERATED)
    if name not in known and ":" not in name:
        raise BadInput(f"--target {name}: no such target; {closest(name, known)}")
    try:
        return target(name)
    except DataError as error:
        raise BadInput(f"--target {name}: {error}") from None


def adapter_rows() -> tuple[Row, ...]:
    """Rows of the adapters to other libraries."""
    from sgmcmc_verification.samplers.adapters.registry import ADAPTERS

    return ADAPTERS


def workload_rows() -> tuple[Row, ...]:
    """Rows of the tier `workload`."""
    from sgmcmc_verification.samplers.topic_models.entries import WORKLOADS

    return WORKLOADS
