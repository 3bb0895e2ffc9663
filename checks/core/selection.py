"""Choice of the targets that a check runs on."""

import functools
from collections.abc import Callable

from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import find_target
from sgmcmc_verification.checks.core.preflight import preflight
from sgmcmc_verification.samplers.interface.claims import Claims
from sgmcmc_verification.targets.target import Target


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


def last(targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """The last one of `targets`."""
    return lambda subject: targets(subject)[-1:]


def gaussian(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets; those that are sums over data only where the row has no others."""
    names = where(lambda target: target.gaussian is not None)(subject)
    return tuple(n for n in names if find_target(n).terms is None) or names


def spread(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets; rows of any dimension also meet a spectrum of 1 to 100, at default options."""
    more = any_dimension(subject) and not subject.options
    return (*gaussian(subject), *(("gaussian-anisotropic", *wide(subject)) if more else ()))


def several(subject: Subject) -> tuple[str, ...]:
    """The Gaussian targets of the row, a correlated one last; all of its targets where there are none."""
    return gaussian(subject) or subject.row.targets


def curved(subject: Subject) -> tuple[str, ...]:
    """The targets that are not on R^n; one target, on which the check says why it does not apply, if there are none."""
    return where(lambda target: not target.manifold.is_linear)(subject) or subject.row.targets[:1]


def claims_of(subject: Subject) -> Claims:
    """The claims of the sampler on the first target of its row."""
    return subject.sampler(find_target(subject.row.targets[0])).claims


PYTREE, NETWORK, MATRIX = "gaussian-pytree", "gaussian-network", "gaussian-matrix"
"""Targets whose positions have several leaves, some of equal shape; of the second, matrices with names that repeat; of
the third, one matrix alone."""
NUMBERS = "gaussian-numbers"
"""A target whose leaves are numbers: what a sampler keeps for each leaf moves the most where leaves are small."""
DATA = "tiny-gaussian-data"
"""A target with data, whose minibatches can be enumerated."""
BANANA = "banana"
"""A target in the plane that is not Gaussian."""
FACES = "dirichlet-faces"
"""A target on the simplex whose density does not vanish at its faces."""
WIDTHS = "three-widths"
"""A target on the line whose modes have widths far apart: what a kernel gives up after some tries shows there, and an
interval that does not look the same from both of its ends."""
HIGH = "gaussian-50d"
"""A target of fifty correlated coordinates."""
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
    return subject.row.foreign or "/" in subject.row.name


@functools.lru_cache(maxsize=512)
def structured_targets(subject: Subject) -> tuple[str, ...]:
    """The target with several leaves if the sampler runs on it, else the first target of its row.

    A reference sampler that is built for it has to run on it; one of a stranger may know arrays only.
    """
    first = subject.row.targets[0]
    if "euclidean" not in claims_of(subject).spaces:
        return (first,)
    return (PYTREE,) if runs_on(subject, PYTREE) else (first,)


@functools.lru_cache(maxsize=512)
def runs_on(subject: Subject, name: str) -> bool:
    """True if the sampler can be built for a target, and one of another author takes a step on it."""
    try:
        target = find_target(name)
        subject.sampler(target)
        subject.estimator(target)
        if _outside(subject):
            preflight(subject, target)
    except (BadInput, ValueError):
        return False
    return True


def any_dimension(subject: Subject) -> bool:
    """True for a sampler on R^n for every n, as far as the targets of its row tell."""
    return {"gaussian-1d-scaled", "gaussian-correlated-2d"} <= set(subject.row.targets)


def and_plane(targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """`targets`, and at default options a law in the plane that is not Gaussian, for samplers of any dimension."""

    def choose(subject: Subject) -> tuple[str, ...]:
        names = targets(subject)
        more = any_dimension(subject) and not subject.options and BANANA not in names and runs_on(subject, BANANA)
        return (*names, BANANA) if more else names

    return choose


def and_all(
    kind: Callable[[Subject], bool], targets: Callable[[Subject], tuple[str, ...]]
) -> Callable[[Subject], tuple[str, ...]]:
    """`and_plane(targets)`; for samplers of a kind also fifty coordinates, a network and data, at default options."""

    def choose(subject: Subject) -> tuple[str, ...]:
        names = and_plane(targets)(subject)
        if subject.options or not any_dimension(subject) or not kind(subject):
            return names
        more = (*wide(subject), *((DATA,) if runs_on(subject, DATA) else ()))
        return (*names, *(name for name in more if name not in names))

    return choose


def and_tree_of_options(targets: Callable[[Subject], tuple[str, ...]]) -> Callable[[Subject], tuple[str, ...]]:
    """`targets`, and a pytree for options other than the defaults: an option may be meant for each leaf."""

    def choose(subject: Subject) -> tuple[str, ...]:
        names = targets(subject)
        more = bool(subject.options) and any_dimension(subject) and PYTREE not in names and runs_on(subject, PYTREE)
        return (*names, PYTREE) if more else names

    return choose


def wide(subject: Subject) -> tuple[str, ...]:
    """A network, or else a matrix, and fifty coordinates, as far as a sampler of any dimension runs on them.

    At default options only.
    """
    if subject.options or not any_dimension(subject):
        return ()
    shaped = next((name for name in (NETWORK, MATRIX) if runs_on(subject, name)), None)
    return tuple(name for name in (shaped, HIGH) if name and runs_on(subject, name))


def first_and_structured(subject: Subject) -> tuple[str, ...]:
    """The first target of the row, and the one with several leaves."""
    return tuple(dict.fromkeys((subject.row.targets[0], *structured_targets(subject))))


def nowhere(subject: Subject) -> tuple[str, ...]:
    """No target: for a statement that runs only where others leave something open."""
    del subject
    return ()
