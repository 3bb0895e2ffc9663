"""The registry of targets: an explicit tuple of names and builders."""

import difflib
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax

from targets import gaussian, quartic
from targets.target import Target


class TargetRow(NamedTuple):
    """A target under a name.

    Attributes:
        name: registry name; equals `build().name`.
        build: () -> Target.
    """

    name: str
    build: Callable[[], Target]


TARGETS: tuple[TargetRow, ...] = (
    TargetRow("gaussian-standard", gaussian.standard),
    TargetRow("gaussian-1d-scaled", gaussian.scaled),
    TargetRow("gaussian-anisotropic", gaussian.anisotropic),
    TargetRow("gaussian-correlated-2d", gaussian.correlated_2d),
    TargetRow("gaussian-correlated-3d", gaussian.correlated_3d),
    TargetRow("gaussian-pytree", gaussian.pytree),
    TargetRow("double-well", quartic.double_well),
    TargetRow("anharmonic", quartic.anharmonic),
)


def target(name: str) -> Target:
    """The target of a name, built once per precision.

    Raises:
        ValueError: if there is no such target.
    """
    # The dtype of `example` follows the precision that jax is set to, so a cached target must not outlive a change.
    return _build(name, jax.dtypes.canonicalize_dtype(float).name)


@cache
def _build(name: str, dtype: str) -> Target:
    del dtype
    for row in TARGETS:
        if row.name == name:
            return row.build()
    known = [row.name for row in TARGETS]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"name: no target {name!r}{hint} Known targets: {', '.join(known)}")
