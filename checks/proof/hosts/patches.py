"""Stand-ins for what symbols cannot answer by themselves in NumPy: conversions, new arrays, functions of `math`.

`np.asarray(x)`, `np.zeros(d)` and `math.sqrt(h)` make numbers of what they are given. While a step is read, modules of
its code see stand-ins for `numpy` and `math` that make symbols of symbols, and such `float`, `min` and `max`. Nothing
else sees them: compiled code writes to the memory of what `np.empty` returns.
"""

import builtins
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jax import core

from sgmcmc_verification.checks.proof.hosts.decisions import refuse
from sgmcmc_verification.checks.proof.hosts.scales import Scale, scaled
from sgmcmc_verification.checks.proof.hosts.symbols import (
    Symbol,
    SymbolicArray,
    apply,
    filled,
    is_symbolic,
    lifted,
    plain,
    symbolic,
    wrap,
)

_MATH = {
    "sqrt": "sqrt",
    "exp": "exp",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "log10": "log10",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "atan": "arctan",
    "fabs": "absolute",
    "pow": "float_power",
    "hypot": "hypot",
    "isfinite": "isfinite",
    "isnan": "isnan",
    "isinf": "isinf",
}
"""Functions of `math` -> those of NumPy."""


def holds_symbols(value: Any) -> bool:
    """True if symbols are in a value, or in lists of them."""
    if isinstance(value, list | tuple):
        return any(map(holds_symbols, value))
    return is_symbolic(value) or isinstance(value, core.Tracer)


def _nested(value: Any) -> Any:
    """Lists with arrays of objects in the place of arrays of symbols."""
    if isinstance(value, list | tuple):
        return [_nested(item) for item in value]
    return plain(value) if is_symbolic(value) or isinstance(value, core.Tracer) else value


def _converted(value: Any, dtype: Any, copy: bool) -> Any:
    """`numpy.asarray`, or `numpy.array` where a copy is made."""
    if isinstance(value, core.Tracer):
        found = symbolic(value)
    elif isinstance(value, SymbolicArray):
        found = wrap(plain(value).copy(), value.dtype) if copy else value
    else:
        found = wrap(np.array(_nested(value), object))
        found.declared = found.dtype
    return found if dtype is None or np.dtype(dtype) == found.dtype else found.astype(dtype)


def converted_array(value: Any) -> Any:
    """Symbols, or lists of them, as an array of symbols, a copy."""
    return _converted(value, None, copy=True)


def _array(original: Callable[..., Any], copies: bool) -> Callable[..., Any]:
    def array(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not holds_symbols(a):
            return original(a, dtype, *args, **kwargs)
        copy = kwargs.get("copy", copies)
        found = _converted(a, dtype, bool(copy))
        return found.reshape((1,) * (kwargs.get("ndmin", 0) - found.ndim) + found.shape) if "ndmin" in kwargs else found

    return array


def _new(original: Callable[..., Any], value: float) -> Callable[..., Any]:
    def new(shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
        if np.dtype(dtype).kind != "f":
            return original(shape, dtype, *args, **kwargs)
        return filled(shape, value, dtype)

    return new


def _full(original: Callable[..., Any]) -> Callable[..., Any]:
    def full(shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        kind = dtype if dtype is not None else getattr(fill_value, "dtype", np.result_type(type(fill_value)))
        if np.dtype(kind).kind != "f" or np.ndim(fill_value):
            return original(shape, fill_value, dtype, *args, **kwargs)
        return filled(shape, fill_value, kind)

    return full


def _function_of_math(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        if any(isinstance(a, Scale) for a in args):
            return scaled(name, *args)
        if not any(map(is_symbolic, args)):
            return original(*args)
        if len(args) == 2 and name == "log":
            return apply("divide", apply("log", args[0]), apply("log", args[1]))
        return apply(name, *(lifted(a.item() if isinstance(a, np.ndarray) else a) for a in args))

    return function


class _RealType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return builtins.isinstance(instance, float)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return builtins.issubclass(subclass, float)

    def __getattr__(cls, name: str) -> Any:
        return getattr(float, name)


class Real(metaclass=_RealType):
    """`float`, which leaves symbols what they are."""

    def __new__(cls, value: Any = 0.0) -> Any:
        """A float, or the symbol of one."""
        if isinstance(value, Scale):
            return value
        if not is_symbolic(value):
            # a number of torch stands for what its tensor does, which the built-in type drops
            return value.item() if hasattr(value, "__torch_function__") else float(value)
        return value.item().astype(np.float64)


def _extreme(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        plainly = len(args) == 2 and not kwargs and any(isinstance(a, Symbol) for a in args)
        if len(args) == 2 and any(isinstance(a, Scale) for a in args) and not plainly:
            return scaled(name, *args)
        return apply(name, *args) if plainly else original(*args, **kwargs)

    return extreme


def _global_draw(name: str) -> Callable[..., Any]:
    original = getattr(np.random, name)

    def draw(*args: Any, **kwargs: Any) -> Any:
        if (present := getattr(np.random, name)) is not original:  # an adapter hands out its own generator's draws
            return present(*args, **kwargs)
        raise refuse(f"numpy.random.{name}, which draws from a generator that is not the one of the step,")

    return draw


BUILT_IN: dict[str, Any] = {
    "float": Real,
    "min": _extreme(min, "minimum"),
    "max": _extreme(max, "maximum"),
}
"""Built-in functions as a sampler's module sees them."""
DRAWING = ("rand", "randn", "random", "random_sample", "normal", "standard_normal", "uniform", "randint", "exponential")
"""Functions of `numpy.random` that draw from its own generator."""


class StandIn(types.ModuleType):
    """A module with some functions of its own, and else those of another one.

    Args:
        original: the other one.
        own: name -> what it has in place of the original.
    """

    def __init__(self, original: types.ModuleType, own: Mapping[str, Any]) -> None:
        super().__init__(original.__name__)
        self.__dict__.update(own, original=original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["original"], name)


def _in_numpy() -> dict[str, Any]:
    copying = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
    found: dict[str, Any] = {name: _array(getattr(np, name), copies=name == "array") for name in copying}
    found |= {name: _new(getattr(np, name), float(name == "ones")) for name in ("zeros", "ones", "empty")}
    return found | {"full": _full(np.full)}


_MATH_FUNCTIONS = {name: _function_of_math(getattr(math, name), other) for name, other in _MATH.items()}
_NUMPY_FUNCTIONS = _in_numpy()
_RANDOM = StandIn(np.random, {name: _global_draw(name) for name in DRAWING})
STAND_INS: dict[int, Any] = {
    id(np): StandIn(np, {**_NUMPY_FUNCTIONS, "random": _RANDOM}),
    id(np.random): _RANDOM,
    id(math): StandIn(math, _MATH_FUNCTIONS),
    **{id(getattr(np, name)): function for name, function in _NUMPY_FUNCTIONS.items()},
    **{id(getattr(math, name)): function for name, function in _MATH_FUNCTIONS.items()},
    **{id(getattr(np.random, name)): _global_draw(name) for name in DRAWING},
}
"""Identity of an object -> what a module that has it gets in its place."""


@contextmanager
def symbols_understood(modules: Sequence[dict[str, Any]]) -> Iterator[None]:
    """A context in which NumPy, `math` and some built-in functions return symbols of symbols, for some modules.

    Args:
        modules: the globals of the modules of the code that is read.
    """
    changed: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = []
    try:
        for module in modules:
            before = {name: value for name, value in module.items() if id(value) in STAND_INS}
            added = tuple(name for name in BUILT_IN if name not in module)
            changed.append((module, before, added))
            module.update({name: STAND_INS[id(value)] for name, value in before.items()})
            module.update({name: BUILT_IN[name] for name in added})
        yield
    finally:
        for module, before, added in reversed(changed):
            module.update(before)
            for name in added:
                module.pop(name, None)
