"""Subjects by the names of the command line: of a registry, an adapter, a module or a file of a stranger.

Every mistake of the caller is one `BadInput` with one line that names the argument and the remedy.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from sgmcmc_verification.checks.core import third_party
from sgmcmc_verification.checks.core.bad_input import BadInput
from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.catalogue import adapter_rows, closest, find_target, workload_rows
from sgmcmc_verification.checks.core.error_origin import RAISED, one_line, place
from sgmcmc_verification.checks.core.importer import load_object
from sgmcmc_verification.checks.core.likely_mistakes import refuse_file
from sgmcmc_verification.samplers.adapters import process
from sgmcmc_verification.samplers.adapters.common import FEW, MissingLibrary, load
from sgmcmc_verification.samplers.adapters.isolated.errors import BridgeError
from sgmcmc_verification.samplers.adapters.optimisers.adapt import of_optax, of_torch
from sgmcmc_verification.samplers.adapters.optimisers.refusal import Refused
from sgmcmc_verification.samplers.entry import Row
from sgmcmc_verification.samplers.interface.claims import Claims

DEFAULT_TARGETS = {
    "euclidean": (
        "gaussian-1d-scaled",
        "gaussian-correlated-2d",
        "anharmonic",
        "double-well",
        "tiny-gaussian-data",
        "tiny-logistic",
    ),
    "positive": ("gamma", "half-gaussian", "truncated-gaussian"),
    "box": ("truncated-interval", "truncated-box"),
    "sphere": ("vmf-s2", "vmf-s3"),
    "simplex": ("dirichlet-concentrated", "dirichlet-four"),
    "stiefel": ("matrix-langevin-3-2",),
    "sphere x euclidean": ("vmf-s2-followed", "vmf-s2-and-line"),
    "positive x euclidean": ("positive-followed", "positive-and-line"),
    "simplex x euclidean": ("dirichlet-followed", "dirichlet-and-line"),
    "finite": ("ising-3x3", "potts-3", "categoricals"),
}
"""Targets for a sampler that is not in a registry, by the spaces that it claims to run on."""
FAMILIES = {"torch": of_torch, "optax": of_optax}
"""Prefix of a `--sampler` value -> what adapts an optimiser of that library."""


def find_row(reference: str, targets: tuple[str, ...] = (), options: Mapping[str, Any] | None = None) -> Row:
    """The row that a `--sampler` value names.

    Args:
        reference: `sgld`, `library/name`, `lda/name` of the tier `workload`, `package.module:object`,
            `path/to/file.py:object`, a command of a process, `process:Rscript my_sampler.R`, or an optimiser,
            `torch:package.module.Class` or `optax:package.module.function`.
        targets: targets to use for an object that no registry knows; () for the defaults of the spaces it claims.
        options: of an optimiser, which is not known without them.

    Raises:
        BadInput: if there is no such sampler, or the object is not one.
    """
    if not reference.strip():
        raise BadInput("--sampler '': empty; it names one of `pytest checks --list samplers`, or FILE.py:OBJECT")
    if reference.startswith(process.PREFIX):
        try:
            build = process.builder(reference.removeprefix(process.PREFIX))
        except BridgeError as error:
            raise BadInput(f"--sampler {reference}: {error}") from None
        return third_party.row(reference, build, targets, DEFAULT_TARGETS, find_target)
    refuse_file(reference)
    if is_optimiser(reference):
        return optimiser_row(reference, options or {}, targets)
    if ":" in reference:
        return third_party.row(reference, load_object(reference), targets, DEFAULT_TARGETS, find_target)
    if reference.endswith(".py"):
        raise BadInput(f"--sampler {reference}: say which object of the file is the sampler, as in {reference}:NAME")
    from sgmcmc_verification.samplers.registry import SAMPLERS

    rows: tuple[Row, ...] = SAMPLERS
    if "/" in reference:
        own = workload_rows()
        rows = own if reference.split("/")[0] in {row.name.split("/")[0] for row in own} else adapter_rows()
    for row in rows:
        if row.name == reference:
            return row
    known = tuple(row.name for row in rows)
    raise BadInput(f"--sampler {reference}: no such sampler; {closest(reference, known)}")


def is_optimiser(reference: str) -> bool:
    """True if a `--sampler` value names an optimiser."""
    return reference.partition(":")[0] in FAMILIES and ":" in reference


def optimiser_row(
    reference: str,
    options: Mapping[str, Any],
    targets: tuple[str, ...],
) -> Row:
    """The row of an optimiser at options, which belong to what is examined; it has no other ones.

    Args:
        reference: value of `--sampler`.
        options: of the optimiser, and of the law that it is held to.
        targets: as for `find_row`.

    Raises:
        BadInput: if the library is missing, the object is no optimiser, an option is wrong, or it raises in a step.
    """
    family, _, path = reference.partition(":")
    try:
        load(family)
        value = load_object(_with_colon(path, reference), reference)
        adapted = FAMILIES[family](path, value, options)
    except BadInput:
        raise
    except (Refused, MissingLibrary) as error:
        raise BadInput(f"--sampler {reference}: {error}") from error
    except RAISED as error:
        raise BadInput(f"--sampler {reference}: cannot take a step ({one_line(error)}{place(error)})") from error
    # a step of torch runs for a millisecond, and one path in Python after the other
    usual = {**DEFAULT_TARGETS, "euclidean": FEW} if family == "torch" else DEFAULT_TARGETS
    found = third_party.row(reference, adapted.build, targets, usual, find_target)
    # of an option whose effect was read it is known what its law is where it is turned on
    off = tuple(name for name in found.off if name not in adapted.found.moved)
    kept = {"notes": (*found.notes, *adapted.notes), "off": off}
    return dataclasses.replace(found, fixed=dict(options), reading=adapted.sentence, **kept)


def _with_colon(path: str, reference: str) -> str:
    """`package.module:Class` of `package.module.Class`; one that has a colon, or a file, is left as it is."""
    if ":" in path:
        return path
    if "." not in path:
        raise BadInput(f"--sampler {reference}: say which class or function, as in {reference}.NAME")
    return ":".join(path.rpartition(".")[::2])


def resolve(
    reference: str,
    options: Mapping[str, Any] | None = None,
    step_size: float | None = None,
    targets: tuple[str, ...] = (),
) -> tuple[Subject, ...]:
    """The subjects of one `--sampler` value: the defaults, then one a variant; only the given options if there are any.

    Args:
        reference: see `find_row`.
        options: options of the sampler.
        step_size: replaces the usual step size of the row (on a target of unit curvature).
        targets: as for `find_row`.

    Raises:
        BadInput: on any mistake of the caller; the sampler is built once on its first target to find out.
    """
    row = find_row(reference, targets, options)
    return subjects_of(row, reference, None if is_optimiser(reference) else options, step_size)


def resolve_object(
    name: str,
    value: Any,
    options: Mapping[str, Any] | None = None,
    step_size: float | None = None,
    targets: tuple[str, ...] = (),
    claims: Claims | None = None,
) -> tuple[Subject, ...]:
    """The subjects of an object, as `resolve` finds those of a name.

    Args:
        name: under which it is reported.
        value: a sampler, its class, or a function of a Target that returns one.
        options: of the sampler.
        step_size: replaces the usual step size on a target of unit curvature.
        targets: as for `find_row`.
        claims: what it is held to; None for its own claims, or the default.

    Raises:
        BadInput: if it cannot be built, or is no sampler.
    """
    row = third_party.row(name, value, targets, DEFAULT_TARGETS, find_target, claims)
    return subjects_of(row, "", options, step_size)


def subjects_of(
    row: Row, reference: str, options: Mapping[str, Any] | None, step_size: float | None
) -> tuple[Subject, ...]:
    """The subjects of a row; the sampler is built once to find out whether it can be. Raises BadInput."""
    called = reference or row.name
    if step_size is not None:
        if not step_size > 0:
            raise BadInput(f"--step-size {step_size}: must be positive")
        row = dataclasses.replace(row, step_size=step_size)
    chosen = dict(options or {})
    variants = ({}, *row.variants) if not chosen else (chosen,)
    subjects = tuple(Subject(row, dict(v), reference) for v in variants)
    try:
        sampler = subjects[0].sampler(find_target(row.targets[0]))
    except BadInput:
        raise
    except MissingLibrary as error:
        raise BadInput(f"--sampler {called}: {error}") from error
    except RAISED as error:
        what = f"with {chosen} " if chosen else ""
        raise BadInput(f"--sampler {called}: cannot be built {what}({one_line(error)}{place(error)})") from error
    if not row.is_kernel and not callable(getattr(sampler, "step", None)):
        raise BadInput(
            f"--sampler {called}: the object has no method `step` (got {type(sampler).__name__}); "
            "a sampler has `step(key, state, step_size, estimator)`; a function of a Target that returns one will do"
        )
    return subjects
