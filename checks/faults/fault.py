"""A row of the registry of planted bugs, and how to derive one from a reference sampler."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.lookup import find_row
from sgmcmc_verification.samplers.entry import Row


@dataclass(frozen=True)
class Kill:
    """The check that must fail, where, and what it says.

    Attributes:
        check: name of a check of the registry.
        target: name of the target.
        equation: the equation that the bug violates there.
        options: options of the sampler under which the bug shows; {} if it shows at the defaults.
    """

    check: str
    target: str
    equation: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Defect:
    """A planted bug.

    Attributes:
        name: `sgld-noise-scale-linear`.
        base: name of the reference sampler that it is derived from, or `module:object` of a right one beside the bug,
            which passes what kills it.
        row: the wrong sampler under the claims of the right one.
        error: what is wrong, in one sentence with the formula.
        source: where the bug was made in public, or the equation that is misprinted; a class of bugs otherwise.
        killed_by: the check that must fail. `error` and `inconclusive` are not kills.
        classes: what hides the bug, names among `CLASSES`.
        equivalent: a proof that the bug changes no law that the checks are about, so that no check may kill it; None
            for a bug that must be killed.
        diagnosis: what its diagnosis has to say, a regular expression; empty for a bug that only a special check sees,
            whose reason stands in the place of a diagnosis.
    """

    name: str
    base: str
    row: Row
    error: str
    source: str
    killed_by: Kill
    classes: tuple[str, ...]
    equivalent: str | None = None
    diagnosis: str = ""

    @property
    def subject(self) -> Subject:
        """The wrong sampler at the options under which the bug shows."""
        return Subject(self.row, dict(self.killed_by.options), self.name)

    @property
    def base_subject(self) -> Subject:
        """The reference sampler at the same options."""
        return Subject(find_row(self.base), dict(self.killed_by.options), self.base)


CLASSES: dict[str, str] = {
    "variance": "the mean is right, the variance wrong by a factor",
    "limit": "the bias does not vanish as h -> 0, or grows",
    "options": "hidden at the default options",
    "dimension": "shows only in more than one dimension, or for an anisotropic or correlated law",
    "leaves": "shows only where a position is a matrix or a tree of arrays",
    "stages": "stale or repeated gradient, stages of the step wrong or in the wrong order",
    "order": "of the claimed order, or one order below it",
    "streams": "random numbers of leaves, stages, chains or steps shared, or independent of the key",
    "non-gaussian": "right on every Gaussian target",
    "metric": "shows only for a metric that depends on the position",
    "gradient-noise": "shows only with gradient noise or minibatches",
    "metropolis": "wrong acceptance probability",
    "state": "state not kept, an input ignored, a frozen chain",
    "reported": "the chain is right, what it reports is not",
    "particles": "interacting particles",
    "manifold": "shows only on a curved manifold, or at a boundary",
    "claims": "the declared H, D, Q or order is wrong",
    "range": "shows only far from the bulk, at rare draws or at small step sizes",
    "precision": "shows in single precision only",
    "data": "the sum over data is scaled wrongly",
    "finite": "on a finite set of states",
    "latent": "in the sampling of latent variables, or in what their counts are taken for",
}
"""Classes of bugs by what hides them; each has at least one planted bug."""


def planted(
    name: str,
    base: str,
    build: Callable[..., Any],
    error: str,
    killed_by: Kill,
    *classes: str,
    source: str = "",
    targets: tuple[str, ...] = (),
    diagnosis: str = "",
    **changes: Any,
) -> Defect:
    """A defect whose row is that of `base` but for the builder.

    Args:
        name: of the defect.
        base: the reference sampler.
        build: `(target, **options) -> Sampler`, or a class that is called with the options.
        error: see `Defect`.
        killed_by: see `Defect`.
        classes: see `Defect`.
        source: see `Defect`.
        targets: of the row; default: the target of the kill.
        diagnosis: see `Defect`.
        changes: other attributes of the row. `variants` are none but the options of the kill, unless given.
    """
    make = build
    if isinstance(build, type):
        make = lambda target, **options: build(**options)  # a sampler that does not depend on the target
    changes.setdefault("variants", (dict(killed_by.options),) if killed_by.options else ())
    row = dataclasses.replace(find_row(base), name=name, build=make, targets=targets or (killed_by.target,), **changes)
    return Defect(name, base, row, error, source, killed_by, classes, diagnosis=diagnosis)
