"""All that a step can keep besides the state that it returns: attributes, closures, globals, generators.

Memory that is not in the state is seen by what it holds before and after real steps. Followed are the attributes of
the sampler and of what it holds, the closures and defaults of its functions, the globals that these name, and the
generators of NumPy, Python and torch.
"""

import functools
import hashlib
import itertools
import operator
import random
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.hosts.decisions import MACHINERY
from sgmcmc_verification.samplers.interface.opened_state import is_tensor

MOST_OBJECTS = 20_000
"""Objects that are looked at."""
OWN = ("sgmcmc_verification.checks", "sgmcmc_verification.targets")
"""Modules of this suite that hold nothing of a sampler."""
SUITE = "sgmcmc_verification.samplers.interface"
"""Objects of this suite that complete a sampler."""
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice)


def modules_of(sampler: object) -> list[dict[str, Any]]:
    """The globals of the modules of a sampler's code, without those of libraries."""
    functions = (f for f in reached(sampler) if isinstance(f, types.FunctionType) and not is_foreign(f.__module__))
    found = {id(f.__globals__): f.__globals__ for f in functions}
    return list(found.values())


def fingerprint(start: object) -> dict[str, str]:
    """Digests of all that a step of a sampler can keep, by what it is; see the module."""
    held = getattr(start, "__dict__", {})
    methods = (
        f for f in held.values() if isinstance(f, types.MethodType) and not is_foreign(type(f.__self__).__module__)
    )
    owners = {id(f.__self__): f.__self__ for f in methods if not type(f.__self__).__module__.startswith(SUITE)}
    found = {
        f"the attribute {name} of {type(owner).__name__}": _digest(value)
        for owner in (start, *owners.values())
        for name, value in getattr(owner, "__dict__", {}).items()
        if not callable(value)
    }
    found["a global, a closure, a default or an attribute of a class"] = _digest(start)
    found["the generator of random"] = repr(random.getstate())
    found["the generator of numpy.random"] = repr(np.random.get_state())  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        found["the generator of torch"] = repr(torch.random.get_rng_state().numpy().tobytes())
    return found


def _digest(start: object) -> str:
    digest, known = hashlib.sha256(), dict[int, int]()
    for value in reached(start):
        known.setdefault(id(value), len(known))
        digest.update(_content(value, known).encode())
    return digest.hexdigest()


def _content(value: Any, known: dict[int, int]) -> str:
    """The content of one object, but for what it holds: that comes after it."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray):
        inner = [id(v) for v in value.ravel()] if value.dtype == object else hashlib.sha256(value.tobytes()).hexdigest()
        return f"{value.dtype} {value.shape} {inner}"
    if isinstance(value, jax.Array):
        is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
        return f"{value.dtype} {np.asarray(jax.random.key_data(value) if is_key else value).tolist()}"
    if isinstance(value, np.generic):
        return repr(value)
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state())
    if isinstance(value, random.Random):
        return repr(value.getstate())
    if is_tensor(value):
        return f"{tuple(value.shape)} {value.detach().tolist()}"
    if isinstance(value, types.FunctionType):
        return value.__qualname__
    if isinstance(value, types.GeneratorType):
        return f"generator {value.gi_frame and value.gi_frame.f_lasti}"
    if isinstance(value, itertools.count):
        return repr(value)
    held = [known.get(id(item)) for item in _held(value)]
    return f"{type(value).__name__} {operator.length_hint(value) if hasattr(value, '__length_hint__') else ''} {held}"


def reached(start: object) -> Iterator[Any]:
    """All objects that can be reached, each once; those of libraries are not looked into."""
    seen: dict[int, Any] = {}
    waiting: list[Any] = [start]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        if len(seen) == MOST_OBJECTS:
            raise Unreadable(f"a sampler that holds more than {MOST_OBJECTS} objects")
        seen[id(value)] = value  # alive, so that no other object gets its number
        yield value
        waiting += reversed(list(_held(value)))


def _held(value: Any) -> Iterator[Any]:
    """All that an object holds."""
    if isinstance(value, (*_PLAIN, np.ndarray, np.generic, jax.Array, types.ModuleType)):
        return
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, property):
        yield from (f for f in (value.fget, value.fset) if f is not None)
    elif isinstance(value, staticmethod | classmethod):
        yield value.__func__
    elif isinstance(value, type):
        if not is_foreign(value.__module__):
            yield from (item for name, item in vars(value).items() if not name.startswith("__") or callable(item))
            yield from value.__bases__
    else:
        yield from _of_object(value)


def _of_object(value: Any) -> Iterator[Any]:
    """Attributes, slots, the variables of a generator, and the class if it is no library's."""
    yield from vars(value).values() if hasattr(value, "__dict__") else ()
    slots = [name for kind in type(value).__mro__ for name in _listed(vars(kind).get("__slots__", ()))]
    yield from (getattr(value, name) for name in slots if not name.startswith("__") and hasattr(value, name))
    if isinstance(value, types.GeneratorType) and value.gi_frame is not None:
        yield from value.gi_frame.f_locals.values()
    if not is_foreign(type(value).__module__):
        yield type(value)


def _listed(names: Any) -> list[str]:
    """The names of slots, of which one alone is written as a string."""
    return [names] if isinstance(names, str) else list(names)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    """Closure, defaults, attributes, and the globals that are named; not those of a library."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    for name in () if is_foreign(function.__module__) else _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def is_foreign(module: str | None) -> bool:
    """True for a module of a library, or of this suite, that holds nothing of a sampler."""
    name = module or ""
    package = name.partition(".")[0]
    return package in MACHINERY or package in sys.stdlib_module_names or name.startswith(OWN)
