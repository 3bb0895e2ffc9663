"""From names on the command line to subjects: registry names, adapters, modules and files of a stranger.

Every mistake of the caller is one `BadInput` with one line that names the argument and the remedy.
"""

import dataclasses
import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from checks.core import third_party
from checks.core.bad_input import BadInput
from checks.core.candidate import Subject
from checks.core.error_origin import one_line, place
from samplers.entry import WORKLOAD, Row
from targets.target import Target

DEFAULT_TARGETS = {
    "euclidean": (
        "gaussian-1d-scaled",
        "gaussian-correlated-2d",
        "anharmonic",
        "double-well",
        "tiny-gaussian-data",
        "tiny-logistic",
    ),
    "positive": ("gamma", "half-gaussian"),
    "sphere": ("vmf-s2",),
    "simplex": ("dirichlet-concentrated",),
    "stiefel": ("matrix-langevin-3-2",),
}
"""Targets for a sampler that is not in a registry, by the spaces that it claims to run on."""


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
    from targets.datasets.files import DataError
    from targets.registry import POSTERIORS, TARGETS, target
    from targets.topic_models.registry import ENUMERATED, enumerated

    if name in ENUMERATED:
        return cast(Target, enumerated(name))  # for rows of the tier `workload` alone
    known = (*(row.name for row in TARGETS + POSTERIORS), *ENUMERATED)
    if name not in known and ":" not in name:
        raise BadInput(f"--target {name}: no such target; {closest(name, known)}")
    try:
        return target(name)
    except DataError as error:
        raise BadInput(f"--target {name}: {error}") from None


def adapter_rows() -> tuple[Row, ...]:
    """Rows of the adapters to other libraries."""
    from samplers.adapters.registry import ADAPTERS

    return ADAPTERS


def workload_rows() -> tuple[Row, ...]:
    """Rows of the tier `workload`."""
    from samplers.topic_models.entries import WORKLOADS

    return WORKLOADS


def find_row(reference: str, targets: tuple[str, ...] = ()) -> Row:
    """The row that a `--sampler` value names.

    Args:
        reference: `sgld`, `library/name`, `lda/name` of the tier `workload`, `package.module:object` or
            `path/to/file.py:object`.
        targets: targets to use for an object that no registry knows; () for the defaults of the spaces it claims.

    Raises:
        BadInput: if there is no such sampler, or the object is not one.
    """
    if ":" in reference:
        return third_party.row(reference, load_object(reference), targets, DEFAULT_TARGETS, find_target)
    if reference.endswith(".py"):
        raise BadInput(f"--sampler {reference}: say which object of the file is the sampler, as in {reference}:NAME")
    from samplers.registry import SAMPLERS

    rows: tuple[Row, ...] = SAMPLERS
    if "/" in reference:
        own = workload_rows()
        rows = own if reference.split("/")[0] in {row.name.split("/")[0] for row in own} else adapter_rows()
    for row in rows:
        if row.name == reference:
            return row
    known = tuple(row.name for row in rows)
    raise BadInput(f"--sampler {reference}: no such sampler; {closest(reference, known)}")


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
    from samplers.adapters.common import MissingLibrary

    row = find_row(reference, targets)
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
        raise BadInput(f"--sampler {reference}: {error}") from error
    except Exception as error:
        what = f"with {chosen} " if chosen else ""
        raise BadInput(f"--sampler {reference}: cannot be built {what}({one_line(error)}{place(error)})") from error
    if WORKLOAD not in row.tiers and not callable(getattr(sampler, "step", None)):
        raise BadInput(
            f"--sampler {reference}: the object has no method `step` (got {type(sampler).__name__}); "
            "a sampler has `step(key, state, step_size, estimator)`; a function of a Target that returns one will do"
        )
    return subjects


def load_object(reference: str) -> Any:
    """The object of `package.module:object` or `path/to/file.py:object`. Raises BadInput."""
    location, _, attribute = reference.rpartition(":")
    if location.endswith(".py") or os.sep in location:
        module = _load_file(reference, Path(location))
    else:
        module = _load_module(reference, location)
    value = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            public = tuple(n for n in vars(module) if not n.startswith("_"))
            raise BadInput(f"--sampler {reference}: {location} has no attribute {attribute!r}; {closest(part, public)}")
        value = getattr(value, part)
    return value


def _load_file(reference: str, path: Path):
    if not path.is_file():
        raise BadInput(f"--sampler {reference}: there is no file {path} (looked in {Path.cwd()})")
    name = "sampler_under_test_" + "".join(c if c.isalnum() else "_" for c in str(path.resolve()))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"--sampler {reference}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    # files beside it can be imported, as they can be when the file is run
    if str(path.resolve().parent) not in sys.path:
        sys.path.append(str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise BadInput(f"--sampler {reference}: cannot import it ({one_line(error)}{place(error)})") from error
    return module


def _load_module(reference: str, name: str):
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"--sampler {reference}: no module named {error.name!r}; install it, or run from the folder that holds it"
        ) from error
    except Exception as error:
        raise BadInput(f"--sampler {reference}: cannot import {name} ({one_line(error)}{place(error)})") from error
