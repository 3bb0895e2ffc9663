"""Other values of the options of a sampler that no registry knows: what can be varied is varied, the rest is named.

A float is doubled and halved, an integer raised by two and by one, a flag flipped, a Literal given its other values.
Each of two sets moves every option, so that two more subjects are examined whatever their number.
"""

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from checks.core.error_origin import RAISED
from samplers.interface.from_step import Completed
from samplers.interface.trees import Options

OF_THE_DATA = ("n", "n_data", "num_data", "num_examples", "data_size", "dataset_size", "train_size", "total")
"""Names that stand for the number of data, which belongs to the target."""
SEEDS = ("seed", "random_state")


def options_of(value: Any) -> dict[str, tuple[Any, Any]]:
    """Name -> (default, annotation) of the options of a class, an object or a function of a Target.

    The fields of a dataclass that `__init__` takes, the parameters of a class or function that have a default; none of
    a sampler put together from functions.
    """
    if isinstance(value, Completed):
        return {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = [f for f in dataclasses.fields(value) if f.init]
        return {f.name: (getattr(value, f.name), _hint(type(value), f.name)) for f in kept}
    if not callable(value) or (hasattr(value, "step") and not isinstance(value, type)):
        return {}
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return {}
    given = parameters if isinstance(value, type) else parameters[1:]
    kept = [p for p in given if p.default is not p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: (p.default, _hint(value, p.name, p.annotation)) for p in kept}


def _hint(owner: Any, name: str, fallback: Any = None) -> Any:
    try:
        return typing.get_type_hints(owner.__init__ if inspect.isclass(owner) else owner).get(name, fallback)
    except RAISED:
        return fallback


def others(name: str, default: Any, hint: Any = None) -> tuple[Any, ...]:
    """Two other values of an option, or one of a flag; () if it cannot be varied."""
    if name in OF_THE_DATA or name in SEEDS:
        return ()
    if typing.get_origin(hint) is Literal:
        return tuple(each for each in typing.get_args(hint) if each != default)[:2]
    if isinstance(default, bool):
        return (not default,)
    if isinstance(default, int):
        return (default + 2, default + 1)
    if isinstance(default, float | np.floating) and np.isfinite(default) and default != 0:
        return (2 * default, default / 2)
    return ()


def variants(value: Any, works: Callable[[Mapping[str, Any]], bool]) -> tuple[tuple[Options, ...], tuple[str, ...]]:
    """At most two sets of option values besides the defaults, and the names of what cannot be varied.

    Args:
        value: a class, an object or a function of a Target.
        works: tells whether the sampler can be built and take a step with these options.

    Returns:
        `(variants, notes)`.
    """
    chosen: dict[str, tuple[Any, ...]] = {}
    kept: list[str] = []
    for name, (default, hint) in options_of(value).items():
        values = tuple(v for v in others(name, default, hint) if works({name: v}))
        if values:
            chosen[name] = values
        elif not callable(default) and name != "claims":
            kept.append(f"the option {name} at other values than {_short(default)}")
    sets = [{name: values[min(i, len(values) - 1)] for name, values in chosen.items()} for i in range(2)]
    found: list[Options] = []
    for each in sets:
        # alone every value works: that was found out above
        some = [each] if len(each) < 2 or works(each) else [{name: value} for name, value in each.items()]
        found += [one for one in some if one and one not in found]
    return tuple(found[:2]), tuple(kept)


def _short(value: Any, most: int = 40) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= most else type(value).__name__
