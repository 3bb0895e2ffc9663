"""Numbers of Python in a step of torch: floats, of which it is remembered what they stand for.

They are the step size, and what `tensor.item()` returns. An argument such as the learning rate has to be a float of C.
What these numbers become in Python keeps a symbol beside its value; where torch hands the bare value on, it is known
again by its 53 bits (`Scales.symbol_of`). A number that came out of them in a way that was not followed is taken for a
constant, and does not agree with real steps at other step sizes and states (`guard`).
"""

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from sgmcmc_verification.checks.proof.hosts.decisions import refuse
from sgmcmc_verification.checks.proof.hosts.symbols import BINARY, COMPARED, UNARY, Symbol, apply, universal

AT = 0.0173205834672911
"""The step size at which a step of torch is carried out while it is read; no program has such a constant."""


class Scales:
    """The numbers that the step size and items of tensors became in one run."""

    def __init__(self) -> None:
        self._symbols: dict[float, Symbol] = {}

    def step_size(self, symbol: Symbol) -> "Scale":
        """The step size itself."""
        return self.kept(AT, symbol)

    def kept(self, value: float, symbol: Symbol) -> "Scale":
        """A number that is remembered; simple ones, which a program may hold too, are not known again."""
        found = Scale(value)
        found.symbol, found.scales = symbol, self
        if value not in (0.0, 1.0, -1.0):
            self._symbols[value] = symbol
        return found

    def symbol_of(self, value: float) -> Symbol | None:
        """The symbol that a bare number stands for; None for a constant."""
        return value.symbol if isinstance(value, Scale) else self._symbols.get(value)


class Scale(float):
    """A float that stands for a symbol."""

    symbol: Symbol
    scales: Scales
    __hash__ = float.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and all(isinstance(a, int | float | np.generic) for a in inputs):
            return scaled(ufunc.__name__, *inputs)
        return universal(ufunc, method, tuple(a.symbol if isinstance(a, Scale) else a for a in inputs), kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        given = [a.symbol if isinstance(a, Scale) else a for a in args]
        return Symbol.__array_function__(self.symbol, function, types, given, kwargs)

    def __bool__(self) -> bool:
        return bool(self.symbol)

    def __copy__(self) -> "Scale":
        return self

    def __deepcopy__(self, memo: Any) -> "Scale":
        del memo
        return self

    def _cut(self, *args: Any) -> NoReturn:
        del args
        raise refuse("the step size, or a number of the state, turned into an integer")

    __int__ = __trunc__ = __round__ = __floor__ = __ceil__ = _cut  # type: ignore[assignment]


def scaled(name: str, *args: Any) -> Any:
    """A function of NumPy of numbers, of which one is a `Scale`."""
    scales = next(a.scales for a in args if isinstance(a, Scale))
    symbol = apply(name, *(a.symbol if isinstance(a, Scale) else a for a in args))
    if symbol.dtype.kind == "b":
        return symbol
    with np.errstate(all="ignore"):
        value = float(getattr(np, name)(*(float(a) for a in args)))
    return scales.kept(value, symbol) if math.isfinite(value) else symbol


def _operator(name: str, short: str, swapped: bool) -> Callable[[Scale, Any], Any]:
    def operator(self: Scale, other: Any) -> Any:
        if isinstance(other, np.ndarray | Symbol):
            return getattr(self.symbol, short)(other)
        if not isinstance(other, int | float | np.generic):
            return NotImplemented
        return scaled(name, other, self) if swapped else scaled(name, self, other)

    return operator


for _short, _name in BINARY.items():
    setattr(Scale, f"__{_short}__", _operator(_name, f"__{_short}__", swapped=False))
    setattr(Scale, f"__r{_short}__", _operator(_name, f"__r{_short}__", swapped=True))
for _short, _name in COMPARED.items():
    setattr(Scale, f"__{_short}__", _operator(_name, f"__{_short}__", swapped=False))
for _short, _name in UNARY.items():
    setattr(Scale, f"__{_short}__", lambda self, name=_name: scaled(name, self))
