"""A row of the registry of targets."""

from collections.abc import Callable
from typing import NamedTuple

from sgmcmc_verification.targets.target import Target


class TargetRow(NamedTuple):
    """A target under a name.

    Attributes:
        name: registry name; equals `build().name`.
        build: () -> Target.
    """

    name: str
    build: Callable[[], Target]
