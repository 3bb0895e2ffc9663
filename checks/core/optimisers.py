"""Optimisers by import path: `torch:package.module.Class` and `optax:package.module.function`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from checks.core import third_party
from checks.core.bad_input import BadInput
from checks.core.error_origin import RAISED, one_line, place
from checks.core.importer import load_object
from samplers.adapters.common import FEW, MissingLibrary, load
from samplers.adapters.optimisers.adapt import of_optax, of_torch
from samplers.adapters.optimisers.refusal import Refused
from samplers.entry import Row

FAMILIES = {"torch": of_torch, "optax": of_optax}


def is_optimiser(reference: str) -> bool:
    """True if a `--sampler` value names an optimiser."""
    return reference.partition(":")[0] in FAMILIES and ":" in reference


def row(
    reference: str,
    options: Mapping[str, Any],
    targets: tuple[str, ...],
    default: Mapping[str, tuple[str, ...]],
    find: Any,
) -> Row:
    """The row of an optimiser at options, which belong to what is examined; it has no other ones.

    Args:
        reference: value of `--sampler`.
        options: of the optimiser, and of the law that it is held to.
        targets: as for `checks.core.third_party.row`, as are `default` and `find`.

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
    usual = {**default, "euclidean": FEW} if family == "torch" else default
    found = third_party.row(reference, adapted.build, targets, usual, find)
    return dataclasses.replace(found, fixed=dict(options), reading=adapted.sentence)


def _with_colon(path: str, reference: str) -> str:
    """`package.module:Class` of `package.module.Class`; one that has a colon, or a file, is left as it is."""
    if ":" in path:
        return path
    if "." not in path:
        raise BadInput(f"--sampler {reference}: say which class or function, as in {reference}.NAME")
    return ":".join(path.rpartition(".")[::2])
