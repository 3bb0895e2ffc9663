"""A row of the registry of checks."""

from collections.abc import Callable
from dataclasses import dataclass

from checks.core.candidate import Subject
from checks.core.result import Result
from targets.target import Target


class NotApplicable(Exception):
    """Raised by a check that does not apply to this sampler on this target; the message is the reason."""


class Inconclusive(Exception):
    """Raised by a check that cannot decide; the message is the reason."""


@dataclass(frozen=True, eq=False)
class Check:
    """A check: a plain function of a subject and a target that returns a `Result`.

    Attributes:
        name: `local_weak_order`.
        tier: one of `samplers.entry.TIERS`.
        equation: what is violated when it fails, in words and symbols.
        run: `(check, subject, target, seed) -> Result`. Raises `NotApplicable` or `Inconclusive` with the reason.
        targets: subject -> names of the targets it runs on (a subset of the catalogue).
        once: True if it is run for the default options only (option variants add nothing).
    """

    name: str
    tier: str
    equation: str
    run: Callable[["Check", Subject, Target, int], Result]
    targets: Callable[[Subject], tuple[str, ...]]
    once: bool = False
