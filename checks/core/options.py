"""Other values of the options of a sampler that no registry knows: what can be varied is varied, the rest is named.

A float is doubled and halved, further ones moved by other factors, so that no product or ratio of two stays what it is;
an integer is raised by two and by one, a flag flipped, a Literal or a member of an enumeration given its other values,
a name those with which the code compares it. A number is moved tenfold where the program is another one there, and an
integer to 1 where the program there is not that of one round fewer than at 2.

Each of two sets moves every option, so that two more subjects are examined whatever their number, but for every other
flag, which the second leaves alone; a third one turns on what is 0.0 by default, if there is such an option.
"""

import ast
import dataclasses
import enum
import functools
import inspect
import itertools
import sys
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np

from sgmcmc_verification.checks.core.error_origin import RAISED
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.trees import Options

OF_THE_DATA = ("n", "n_data", "num_data", "num_examples", "data_size", "dataset_size", "train_size", "total")
"""Names that stand for the number of data, which belongs to the target."""
SEEDS = ("seed", "random_state")
FACTORS = (2.0, 2 / 3, 0.6, 1.4)
"""Factors of the first floats, in turn."""
FAR = 10
"""Factor by which a number is moved where the program is another one there."""
ON = 0.5
"""Value of an option that is 0.0 by default, such as a momentum: it is a share as often as a rate."""


class Variants(NamedTuple):
    """Options that are tried besides the defaults.

    Attributes:
        sets: of option values.
        notes: names of what cannot be varied.
        off: names of options that are off by default and that the last set turns on.
    """

    sets: tuple[Options, ...]
    notes: tuple[str, ...]
    off: tuple[str, ...] = ()


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
    given = parameters[1:] if takes_a_target(value) else parameters
    kept = [p for p in given if p.default is not p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: (p.default, _hint(value, p.name, p.annotation)) for p in kept}


def takes_a_target(value: Any) -> bool:
    """True for a function of a Target: its first parameter has no default, or is called so; that of a class must be.

    A function all of whose parameters have one makes the same sampler for every target.
    """
    try:
        first = next(iter(inspect.signature(value).parameters.values()), None)
    except (TypeError, ValueError):
        return True
    if first is None:
        return False
    return first.name == "target" or (first.default is first.empty and not isinstance(value, type))


def _hint(owner: Any, name: str, fallback: Any = None) -> Any:
    try:
        return typing.get_type_hints(owner.__init__ if inspect.isclass(owner) else owner).get(name, fallback)
    except RAISED:
        return fallback


def others(
    name: str, default: Any, hint: Any = None, named: Sequence[str] = (), factor: float = FACTORS[0]
) -> tuple[Any, ...]:
    """Two other values of an option, or one of a flag; () if it cannot be varied.

    Args:
        name: of the option.
        default: its value.
        hint: its annotation.
        named: texts with which the code compares it.
        factor: of a float, at its first other value; it is divided by it at its second.
    """
    if name in OF_THE_DATA or name in SEEDS:
        return ()
    if typing.get_origin(hint) is Literal:
        return tuple(each for each in typing.get_args(hint) if each != default)[:2]
    if isinstance(default, enum.Enum):
        return tuple(each for each in type(default) if each is not default)[:2]
    if isinstance(default, bool):
        return (not default,)
    if isinstance(default, int):
        return (default + 2, default + 1)
    if isinstance(default, str):
        return tuple(text for text in named if text != default)[:2]
    if default is None and name == "temperature":
        return (2.0, 0.5)  # the one option without a value of which it is known what any value means
    if _is_scalable(default):
        return (factor * default, default / factor)
    return ()


def _is_scalable(default: Any) -> TypeGuard[float]:
    return isinstance(default, float | np.floating) and bool(np.isfinite(default)) and default != 0


def distant(default: Any, values: tuple[Any, ...], program: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The values of a number, the last one or that of the same side moved farther where the program is another one.

    Args:
        default: the number.
        values: two others.
        program: value -> what is done, to be compared; None if that is not known.
    """
    if isinstance(default, bool) or not isinstance(default, int | float) or len(values) != 2:
        return values
    program = functools.cache(program)
    if program(default) is None:
        return values
    if isinstance(default, int):
        # a loop that is written out is longer, and no other program
        kinds = lambda value: frozenset(program(value) or program(default))
        far = max(FAR, 3 * default)
        first = 1 if default > 1 and _is_special(program, default) else values[0]
        return (first, values[1] if kinds(far) in (kinds(default), kinds(values[0])) else far)
    moved = [(near, FAR * default if abs(near) > abs(default) else default / FAR) for near in values]
    return tuple(near if program(far) in (None, program(default), program(near)) else far for near, far in moved)


def _is_special(program: Callable[[Any], Any], default: int) -> bool:
    """True if a step with 1 is not the one whose length changes by as much with each of the integers from 1 on.

    Only then is 1 tried: of an iteration that must converge, or of an ensemble, it may be no value at all.
    """
    lengths = [len(program(value) or ()) for value in (default, default + 1, default + 2)]
    rounds = lengths[1] - lengths[0]
    one = len(program(1) or ())
    return one > 0 and lengths[2] - lengths[1] == rounds and one != lengths[0] - (default - 1) * rounds


def named_values(value: Any) -> dict[str, tuple[str, ...]]:
    """Name -> the texts with which the code of a class, an object or a function compares a variable of that name.

    Read are comparisons, `match`, and tables of which it is the key, also those of its module.
    """
    owner = value if inspect.isclass(value) or inspect.isfunction(value) else type(value)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, dict[str, None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides: list[ast.AST] = [node.left, *node.comparators]
            subject, *rest = [s for s in sides if isinstance(s, ast.Name | ast.Attribute)] or [None]
            values = [] if subject is None or rest else [s for s in sides if s is not subject]
        elif isinstance(node, ast.Match):
            subject, values = node.subject, [case.pattern for case in node.cases]
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
            subject, values = node.slice, [key for key in node.value.keys if key is not None]
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            table = vars(sys.modules.get(owner.__module__, ast)).get(node.value.id)
            subject, values = node.slice, [ast.Constant(key) for key in table] if isinstance(table, Mapping) else []
        else:
            continue
        name = getattr(subject, "attr", getattr(subject, "id", ""))
        constants = [c.value for v in values for c in ast.walk(v) if isinstance(c, ast.Constant)]
        found.setdefault(name, {}).update(dict.fromkeys(c for c in constants if isinstance(c, str)))
    return {name: tuple(texts) for name, texts in found.items() if texts}


def variants(
    value: Any, works: Callable[[Mapping[str, Any]], bool], program: Callable[[Mapping[str, Any]], Any] = lambda _: None
) -> Variants:
    """At most two sets of option values besides the defaults, one more for what is off, and what cannot be varied.

    Args:
        value: a class, an object or a function of a Target.
        works: tells whether the sampler can be built and take a step with these options.
        program: the operations of a step with these options, None if they are not known.
    """
    chosen: dict[str, tuple[Any, ...]] = {}
    on: dict[str, float] = {}
    kept: list[str] = []
    named, factors = named_values(value), itertools.cycle(FACTORS)
    for name, (default, hint) in options_of(value).items():
        factor = next(factors) if _is_scalable(default) else 1.0
        values = tuple(v for v in others(name, default, hint, named.get(name, ()), factor) if works({name: v}))
        if isinstance(default, float) and not default and name not in (*OF_THE_DATA, *SEEDS) and works({name: ON}):
            on[name] = ON
        elif values:
            far = distant(default, values, lambda v, name=name: program({name: v}))
            chosen[name] = tuple(f if f == v or works({name: f}) else v for f, v in zip(far, values, strict=True))
        elif not callable(default) and name != "claims":
            kept.append(f"the option {name} at other values than {_short(default)}")
    sets = [{name: values[min(i, len(values) - 1)] for name, values in chosen.items()} for i in range(2)]
    for name in [name for name, values in chosen.items() if isinstance(values[0], bool)][1::2]:
        del sets[1][name]  # two flags together may hide what each of them does
    found: list[Options] = []
    for each in sets:
        # alone every value works: that was found out above
        some = [each] if len(each) < 2 or works(each) else [{name: value} for name, value in each.items()]
        found += [one for one in some if one and one not in found]
    last = on if len(on) < 2 or works(on) else dict([*on.items()][:1])
    kept += [f"the option {name} at other values than 0.0" for name in on if name not in last]
    return Variants((*found[:2], *((last,) if last else ())), tuple(kept), tuple(last))


def _short(value: Any, most: int = 40) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= most else type(value).__name__
