"""Choice of the targets that a check runs on."""

import functools
from collections.abc import Callable

from checks.core.candidate import Subject
from checks.core.lookup import BadInput, find_target
from checks.core.preflight import preflight
from samplers.interface.claims import Claim, Claims, Law
from targets.target import Target


def where(suits: Callable[[Target], bool]) -> Callable[[Subject], tuple[str, ...]]:
    """The targets of the row that suit a check."""
    return lambda subject: tuple(name for name in subject.row.targets if suits(find_target(name)))


def informative(subject: Subject) -> tuple[str, ...]:
    """The targets that the dearer checks run on.

    Sums over data repeat a law at a higher price, and a one-dimensional Gaussian shows nothing that a correlated one
    does not. Options other than the defaults meet the last target, which is not Gaussian where the row has such a
    one; the exact laws on Gaussians are cheap and run for all.
    """
    names = where(lambda target: target.terms is None)(subject) or subject.row.targets
    several = where(lambda target: target.gaussian is not None and target.size > 1)(subject)
    if several:
        names = tuple(n for n in names if n in several or find_target(n).gaussian is None)
    return names[-1:] if subject.options else names


def planar(subject: Subject) -> tuple[str, ...]:
    """`informative`; at default options also a target of two coordinates where all of the row have one.

    One coordinate hides what is wrong with a matrix.
    """
    law = [find_target(name) for name in subject.row.targets]
    line_only = all(target.size == 1 and target.manifold.is_linear for target in law)
    return (*informative(subject), *PLANE) if line_only and not subject.options else informative(subject)


def of_law(law: type[Law], targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """`targets` for samplers that claim a law of a type; for others one target, on which the check does not apply."""
    return lambda subject: targets(subject) if law in claims_of(subject) else subject.row.targets[:1]


def last(targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """The last one of `targets`."""
    return lambda subject: targets(subject)[-1:]


def gaussian(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets; those that are sums over data only where the row has no others."""
    names = where(lambda target: target.gaussian is not None)(subject)
    return tuple(n for n in names if find_target(n).terms is None) or names


def spread(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets; rows of any dimension also meet a spectrum of 1 to 100, at default options."""
    names, rows = gaussian(subject), subject.row.targets
    any_dimension = {"gaussian-1d-scaled", "gaussian-correlated-2d"} <= set(rows)
    return (*names, "gaussian-anisotropic") if any_dimension and not subject.options else names


def several(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets of the row, a correlated one last; all of its targets where there are none."""
    return gaussian(subject) or subject.row.targets


def curved(subject: Subject) -> tuple[str, ...]:
    """The targets that are not on R^n; one target, on which the check says why it does not apply, if there are none."""
    return where(lambda target: not target.manifold.is_linear)(subject) or subject.row.targets[:1]


def claims_of(subject: Subject) -> Claims:
    """The claims of the sampler on the first target of its row."""
    return subject.sampler(find_target(subject.row.targets[0])).claims


def claiming(
    claim: type[Claim], targets: Callable[[Subject], tuple[str, ...]], without: type[Claim] | None = None
) -> Callable[[Subject], tuple[str, ...]]:
    """`targets` for samplers that make a claim, and do not make the one of the type `without`; none for others."""

    def choose(subject: Subject) -> tuple[str, ...]:
        claims = claims_of(subject)
        return targets(subject) if claim in claims and (without is None or without not in claims) else ()

    return choose


def inhabiting(space: str, targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """`targets` for samplers that run on a space; none for others."""
    return lambda subject: targets(subject) if space in claims_of(subject).spaces else ()


PYTREE = "gaussian-pytree"
"""A target whose position has several leaves, two of equal shape."""
PLANE = ("gaussian-correlated-2d",)
UNIFORM = ("uniform-s2",)
curved_only = where(lambda target: target.manifold.dim < target.size)
gaussian_line = where(lambda target: target.gaussian is not None and target.size == 1)
with_data = where(lambda target: target.gaussian is not None and target.terms is not None)
curved_line = where(lambda target: target.gaussian is None and target.size == 1 and target.interval is not None)
line = where(lambda target: target.size == 1 and target.interval is not None)
everywhere = where(lambda target: True)


def _outside(subject: Subject) -> bool:
    """True for a sampler that is not a reference sampler of the suite."""
    return any(c in (subject.reference or subject.row.name) for c in ":/")


@functools.lru_cache(maxsize=512)
def structured_targets(subject: Subject) -> tuple[str, ...]:
    """The target with several leaves if the sampler runs on it, else the first target of its row.

    A reference sampler that is built for it has to run on it; one of a stranger may know arrays only.
    """
    first = subject.row.targets[0]
    if "euclidean" not in claims_of(subject).spaces:
        return (first,)
    try:
        target = find_target(PYTREE)
        subject.sampler(target)
        subject.estimator(target)
        if _outside(subject):
            preflight(subject, target)
    except (BadInput, ValueError):
        return (first,)
    return (PYTREE,)


def first_and_structured(subject: Subject) -> tuple[str, ...]:
    """The first target of the row, and the one with several leaves."""
    return tuple(dict.fromkeys((subject.row.targets[0], *structured_targets(subject))))
