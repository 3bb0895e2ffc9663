"""Objects that stand for numbers, and arrays of them that NumPy moves, views and writes to as it does with any others.

An array of symbols is an ndarray of objects. What is a view and what a copy, what an index means and what is written in
place is therefore NumPy's own doing; only arithmetic goes another way, by `__array_ufunc__`, entry by entry.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sgmcmc_verification.checks.proof.hosts.decisions import chosen, decided, refuse
from sgmcmc_verification.checks.proof.hosts.operations import KEEP_SIGN, applied, cast, is_known
from sgmcmc_verification.checks.proof.reader.values import Array, objects
from sgmcmc_verification.samplers.adapters.torch.crossing import to_tensor
from sgmcmc_verification.samplers.interface.opened_state import is_tensor

NOT_GIVEN = np._NoValue  # noqa: SLF001  # what NumPy has in the place of an argument


class Symbol:
    """A number of the state, a draw, the step size, or what became of them; it never changes.

    Args:
        value: a scalar of JAX, or a number of the program.
        positive: whether it is known to be positive.
        values: the integers that it can be, where it is one of a few.
    """

    __slots__ = ("positive", "value", "values")
    __hash__ = None  # type: ignore[assignment]
    shape: tuple[int, ...] = ()
    ndim, size = 0, 1

    def __init__(self, value: Any, positive: bool = False, values: range | None = None) -> None:
        self.value, self.positive, self.values = value, positive, values

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the number."""
        return np.result_type(self.value) if is_known(self.value) else np.dtype(self.value.dtype)

    def __jax_array__(self) -> Any:
        return self.value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return universal(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        wrapped = tuple(wrap(scalar_array(a)) if isinstance(a, Symbol) else a for a in args)
        return SymbolicArray.__array_function__(wrap(scalar_array(self)), function, types, wrapped, kwargs)

    def __bool__(self) -> bool:
        truth = apply("not_equal", self, 0).value if self.dtype.kind != "b" else self.value
        return bool(truth) if is_known(truth) else decided(truth)

    def __float__(self) -> float:
        if is_known(self.value):
            return float(self.value)
        raise refuse("a number of the state or a draw turned into a Python float")

    def __int__(self) -> int:
        if is_known(self.value):
            return int(self.value)
        if self.values is not None:
            return self._chosen(self.values)
        raise refuse("a number of the state or a draw turned into a Python integer")

    def __index__(self) -> int:
        if is_known(self.value):
            return int(self.value)
        if self.values is not None:
            return self._chosen(self.values)
        raise refuse("a number of the state or a draw used as an index")

    def _chosen(self, values: range) -> int:
        """The integer that it is on the present way."""
        one_by_one = lambda: next((k for k in values[:-1] if bool(apply("equal", self, k))), values[-1])
        return chosen(self.value, one_by_one)

    def __copy__(self) -> "Symbol":
        return self

    def __deepcopy__(self, memo: Any) -> "Symbol":
        del memo
        return self

    def item(self) -> "Symbol":
        """The number itself."""
        return self

    copy = sum = mean = squeeze = item

    def astype(self, dtype: Any, **kwargs: Any) -> "Symbol":
        """The number as one of another type."""
        del kwargs
        return converted(self, np.dtype(dtype))

    def all(self) -> "Symbol":
        """Its truth."""
        return converted(self, np.dtype(bool))

    any = all

    def __repr__(self) -> str:
        return f"<a number that is not known, {self.dtype}>"


def _operator(name: str, short: str, swapped: bool = False) -> Callable[[Symbol, Any], Any]:
    in_python = getattr(operator, f"__{short}__")

    def of_symbol(self: Symbol, other: Any) -> Any:
        if is_tensor(other):  # torch knows how to follow its own
            own = to_tensor(wrap(scalar_array(self)))
            return in_python(other, own) if swapped else in_python(own, other)
        if isinstance(other, np.ndarray):
            inputs = (other, self) if swapped else (self, other)
            return universal(getattr(np, name), "__call__", inputs, {})
        if not isinstance(other, Symbol | bool | int | float | np.generic) and not _is_scalar(other):
            return NotImplemented
        return apply(name, other, self) if swapped else apply(name, self, other)

    return of_symbol


def _is_scalar(value: Any) -> bool:
    return isinstance(value, jax.Array) and value.ndim == 0


BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "mod": "remainder",
    "floordiv": "floor_divide",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
COMPARED = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
for _short, _name in BINARY.items():
    setattr(Symbol, f"__{_short}__", _operator(_name, _short))
    setattr(Symbol, f"__r{_short}__", _operator(_name, _short, swapped=True))
for _short, _name in COMPARED.items():
    setattr(Symbol, f"__{_short}__", _operator(_name, _short))
for _short, _name in UNARY.items():
    setattr(Symbol, f"__{_short}__", lambda self, name=_name: apply(name, self))


def apply(name: str, *entries: Any) -> Symbol:
    """A function of NumPy of single numbers."""
    known = [entry if isinstance(entry, Symbol) else Symbol(entry) for entry in entries]
    if name in COMPARED.values() and (sign := _sign(*known)) is not None:
        return Symbol(np.bool_(bool(getattr(np, name)(sign, 0))))
    value = applied(name, [entry.value for entry in known])
    return Symbol(value, name == "exp" or (name in KEEP_SIGN and all(map(_is_positive, known))))


def _is_positive(a: Symbol) -> bool:
    return a.positive or (is_known(a.value) and bool(a.value > 0))


def _sign(a: Symbol, b: Symbol) -> int | None:
    """The sign of a - b where one is positive and the other a number that is not; None where it is not known."""
    if a.positive and is_known(b.value) and b.value <= 0:
        return 1
    if b.positive and is_known(a.value) and a.value <= 0:
        return -1
    return None


def converted(entry: Any, dtype: np.dtype[Any]) -> Symbol:
    """A number as one of another type. Raises Unreadable where it would be cut to an integer."""
    symbol = entry if isinstance(entry, Symbol) else Symbol(entry)
    if dtype in (symbol.dtype, np.dtype(object)):
        return symbol
    if dtype.kind in "iu" and symbol.dtype.kind == "f" and not is_known(symbol.value):
        raise refuse("a number of the state or a draw cut to an integer")
    if dtype.kind not in "biuf":
        raise refuse(f"a number of the state or a draw as {dtype}")
    return Symbol(cast(symbol.value, dtype), symbol.positive, symbol.values if dtype.kind in "iu" else None)


class SymbolicArray(np.ndarray):
    """An array of symbols: in memory one of objects, for those who ask one of numbers."""

    declared: np.dtype[Any] | None

    def __array_finalize__(self, obj: Any) -> None:
        self.declared = getattr(obj, "declared", None)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The type of the numbers that it stands for."""
        if self.declared is not None:
            return self.declared
        kinds = {lifted(entry).dtype for entry in np.ndarray.ravel(plain(self))}
        return np.result_type(*kinds) if kinds else np.dtype(np.float64)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return universal(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        own = FUNCTIONS.get(func)
        if own is not None:
            return own(*args, **kwargs)
        kinds = [kind if issubclass(kind, np.ndarray) else SymbolicArray for kind in types]
        return result(super().__array_function__(func, kinds, args, kwargs))

    def __getitem__(self, index: Any) -> Any:
        return result(super().__getitem__(known_index(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        kind = self.dtype
        mask = _symbolic_mask(index)
        if mask is not None:
            if np.ndim(value):
                raise refuse("entries chosen by the state or by draws, written one by one")
            value, index = where(mask, value, self), ...
        entries = np.asarray(plain(value) if isinstance(value, np.ndarray) else value, object)
        super().__setitem__(known_index(index), each(lambda entry: converted(entry, kind), entries)[()])
        self.declared = kind

    def __deepcopy__(self, memo: Any) -> "SymbolicArray":
        del memo
        return self.copy()

    def item(self, *args: Any) -> Any:
        """One of the symbols."""
        return lifted(super().item(*args))

    def tolist(self) -> Any:
        """Lists of symbols."""
        return plain(each(lifted, plain(self))).tolist()

    def _memory(self, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise refuse("the memory of an array of the state or of draws")

    tobytes = tofile = dump = dumps = __reduce__ = __reduce_ex__ = argsort = sort = argmax = argmin = _memory
    ctypes = data = property(_memory)  # type: ignore[assignment]


def plain(array: Any) -> Array:
    """The objects of an array, the same memory; numbers of the program as objects."""
    if isinstance(array, SymbolicArray):
        return array.view(np.ndarray)
    if isinstance(array, np.ndarray) and array.dtype == object:
        return array
    if isinstance(array, Symbol):
        return scalar_array(array)
    return np.asarray(entries_of(array), object)


def entries_of(array: Any) -> Any:
    """An array of symbols of a value of JAX that is being recorded; anything else as it is."""
    return plain(symbolic(array)) if isinstance(array, jax.Array) else array


def scalar_array(entry: Any) -> Array:
    """One object without axes."""
    return objects([entry], ())


def lifted(entry: Any) -> Symbol:
    """A symbol of a number."""
    return entry if isinstance(entry, Symbol) else Symbol(entry)


def wrap(array: Array, declared: np.dtype[Any] | None = None) -> SymbolicArray:
    """Objects as an array of symbols, the same memory."""
    found = array.view(SymbolicArray)
    found.declared = declared
    return found


def result(value: Any) -> Any:
    """The outcome of NumPy on symbols: arrays of objects are arrays of symbols."""
    if isinstance(value, tuple | list):
        return type(value)(map(result, value))
    if isinstance(value, np.ndarray):
        return value if isinstance(value, SymbolicArray) or not value.dtype.hasobject else wrap(value)
    return value


def each(function: Callable[..., Any], *arrays: Array) -> Array:
    """A function of entries, with broadcasting."""
    broadcast = np.broadcast_arrays(*arrays)
    items = [function(*entries) for entries in zip(*(a.ravel() for a in broadcast), strict=True)]
    return objects(items, broadcast[0].shape)


def is_symbolic(value: Any) -> bool:
    """True for symbols and arrays of them."""
    return isinstance(value, Symbol | SymbolicArray)


def symbolic(value: Any, positive: bool = False, values: range | None = None) -> SymbolicArray:
    """An array of symbols for an array of JAX or of the program."""
    kind = np.dtype(value.dtype)
    shape = np.shape(value)
    if not isinstance(value, jax.Array):
        return wrap(objects([Symbol(v) for v in np.asarray(value).ravel()], shape), kind)
    flat, size = lax.reshape(value, (math.prod(shape),)), math.prod(shape)
    items = [Symbol(lax.squeeze(lax.slice(flat, (i,), (i + 1,)), (0,)), positive, values) for i in range(size)]
    return wrap(objects(items, shape), kind)


def recorded(value: Any) -> Any:
    """The array of JAX that symbols stand for; anything else as it is."""
    if isinstance(value, Symbol):
        return np.asarray(value.value) if is_known(value.value) else value.value
    if not isinstance(value, SymbolicArray):
        return value
    kind = value.dtype
    entries = [cast(lifted(entry).value, kind) for entry in plain(value).ravel()]
    if all(map(is_known, entries)):
        return np.asarray(entries, kind).reshape(value.shape)
    parts = [lax.reshape(entry, (1,)) if not is_known(entry) else np.asarray(entry).reshape(1) for entry in entries]
    return lax.reshape(lax.concatenate(parts, 0), value.shape)


def known_index(index: Any) -> Any:
    """An index with numbers of the program in the place of symbols for them. Raises Unreadable for other symbols."""
    if isinstance(index, tuple):
        return tuple(map(known_index, index))
    if isinstance(index, Symbol):
        return index.__index__()
    if isinstance(index, SymbolicArray):
        entries = [lifted(entry).value for entry in plain(index).ravel()]
        if not all(map(is_known, entries)):
            raise refuse("entries chosen by the state or by draws")
        return np.asarray(entries, index.dtype).reshape(index.shape)
    return index


def _symbolic_mask(index: Any) -> SymbolicArray | None:
    """The mask of an index that is one of booleans which are not known."""
    if not isinstance(index, SymbolicArray) or index.dtype.kind != "b":
        return None
    return None if all(is_known(lifted(entry).value) for entry in plain(index).ravel()) else index


# Functions of NumPy ---------------------------------------------------------------------------------------------------

ALIASES = {"true_divide": "divide", "abs": "absolute", "conj": "conjugate", "mod": "remainder", "pow": "power"}


def universal(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc of symbols, or one of its methods. Raises Unreadable for what is not read."""
    name = ALIASES.get(ufunc.__name__, ufunc.__name__)
    out = kwargs.pop("out", None)
    kwargs = {
        key: value for key, value in kwargs.items() if value is not None and key not in ("casting", "order", "subok")
    }
    if kwargs.get("where", True) is not True:
        raise refuse(f"numpy.{name} with a mask")
    kwargs.pop("where", None)
    kind = kwargs.pop("dtype", None)
    if method == "__call__" and name == "matmul":
        found = product(*inputs)
    elif method == "__call__":
        found = each(functools.partial(apply, name), *map(plain, inputs))
    elif method == "reduce":
        axis = kwargs.pop("axis", 0)
        found = np.asarray(reduced(name, inputs[0], axis, **kwargs), object)
        kwargs = {}
    elif method == "accumulate":
        found = _accumulated(name, plain(inputs[0]), kwargs.pop("axis", 0))
    elif method == "outer":
        a, b = map(plain, inputs)
        found = each(functools.partial(apply, name), a.reshape(a.shape + (1,) * b.ndim), b)
    else:
        raise refuse(f"numpy.{name}.{method}")
    _nothing_else(f"numpy.{name}", kwargs)
    array: Any = wrap(found if isinstance(found, np.ndarray) else scalar_array(found))
    return written(array if kind is None else array.astype(kind), out)


def written(array: SymbolicArray, out: Any) -> Any:
    """An array as NumPy returns it: one number without axes by itself, or what is written to `out`."""
    target = out[0] if isinstance(out, tuple) else out
    if target is None:
        return lifted(plain(array)[()]) if array.ndim == 0 else array
    if not isinstance(target, SymbolicArray):
        raise refuse("numbers of the state or draws written to an array that was made before the step")
    target[...] = array
    return target


def _nothing_else(name: str, kwargs: dict[str, Any]) -> None:
    for key, value in kwargs.items():
        if value is not None and value is not NOT_GIVEN:
            raise refuse(f"{name} with the argument {key}")


def reduced(
    name: str,
    value: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """A function of two numbers folded over axes; all of them where `axis` is None."""
    if where not in (True, NOT_GIVEN) or initial not in (None, NOT_GIVEN):
        raise refuse(f"numpy.{name}.reduce with a mask or a first value")
    array = plain(value)
    axes = range(array.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
    axes = sorted({int(i) % max(array.ndim, 1) for i in axes}) if array.ndim else []
    kept = [i for i in range(array.ndim) if i not in axes]
    shape = tuple(array.shape[i] for i in kept)
    rows = array.transpose([*kept, *axes]).reshape(math.prod(shape), -1)
    if not rows.shape[1] and name not in _UNITS:
        raise ValueError(f"numpy.{name} of nothing")
    kinds: Sequence[Any] = [
        functools.reduce(functools.partial(apply, name), row) if len(row) else _UNITS[name] for row in rows
    ]
    if name in ("logical_and", "logical_or"):
        kinds = [converted(entry, np.dtype(bool)) for entry in kinds]
    found = objects([lifted(entry) for entry in kinds], shape)
    if keepdims is True:
        found = found.reshape([1 if i in axes else n for i, n in enumerate(array.shape)])
    wrapped: Any = wrap(found)
    return written(wrapped if dtype in (None, NOT_GIVEN) else wrapped.astype(dtype), None if out is NOT_GIVEN else out)


_UNITS: dict[str, Any] = {"add": 0.0, "multiply": 1.0, "logical_and": True, "logical_or": False}


def _accumulated(name: str, array: Array, axis: int) -> Array:
    rows = np.moveaxis(array, axis, 0).copy()
    for i in range(1, len(rows)):
        rows[i] = each(functools.partial(apply, name), rows[i - 1 : i][0], rows[i : i + 1][0])
    return np.moveaxis(rows, 0, axis)


def product(a: Any, b: Any) -> Array:
    """The product of matrices and vectors, over leading axes alike."""
    x, y = plain(a), plain(b)
    left, right = x.ndim == 1, y.ndim == 1
    x, y = x[None, :] if left else x, y[:, None] if right else y
    multiply, add = functools.partial(apply, "multiply"), functools.partial(apply, "add")
    terms = each(multiply, x[..., :, :, None], y[..., None, :, :])
    found = np.empty((*terms.shape[:-2], terms.shape[-1]), object)
    for place in np.ndindex(*found.shape):
        found[place] = functools.reduce(add, terms[(*place[:-1], slice(None), place[-1])], Symbol(0.0))
    found = found[..., 0, :] if left else found
    return found[..., 0] if right else found


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return written(wrap(each(functools.partial(apply, "multiply"), plain(a), plain(b))), out)
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        raise refuse("numpy.dot of more than two axes")
    return written(wrap(np.asarray(product(a, b), object)), out)


def where(condition: Any, *cases: Any) -> Any:
    """numpy.where, entry by entry."""
    if len(cases) != 2:
        raise refuse("places where a condition holds")

    def entry(flag: Any, yes: Any, no: Any) -> Symbol:
        truth = converted(flag, np.dtype(bool)).value
        if is_known(truth):
            return lifted(yes if truth else no)
        a, b = lifted(yes), lifted(no)
        kind = np.result_type(a.dtype, b.dtype)
        return Symbol(lax.select_n(truth, cast(b.value, kind), cast(a.value, kind)), a.positive and b.positive)

    return written(wrap(each(entry, *(plain(value) for value in (condition, *cases)))), None)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """numpy.clip by maximum and minimum."""
    low, high = kwargs.pop("min", a_min), kwargs.pop("max", a_max)
    _nothing_else("numpy.clip", kwargs)
    found = a if low is None or low is NOT_GIVEN else np.maximum(a, low)
    found = found if high is None or high is NOT_GIVEN else np.minimum(found, high)
    return written(wrap(plain(found).copy()), out)


def filled(shape: Any, value: Any, dtype: Any = None) -> SymbolicArray:
    """An array of symbols for one number."""
    size = (int(shape),) if np.ndim(shape) == 0 else tuple(map(int, shape))
    kind = np.dtype(np.float64 if dtype is None else dtype)
    return wrap(objects([converted(value, kind)] * math.prod(size), size), kind)


def _like(value: Any) -> Callable[..., SymbolicArray]:
    def like(a: Any, *args: Any, dtype: Any = None, shape: Any = None, **kwargs: Any) -> SymbolicArray:
        del kwargs  # where in memory, and in which order
        number = args[0] if value is None else value
        given = args[1:] if value is None else args
        kind = dtype if dtype is not None else given[0] if given else getattr(a, "dtype", None)
        return filled(np.shape(a) if shape is None else shape, number, kind)

    return like


def _outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = plain(a).ravel(), plain(b).ravel()
    return written(wrap(each(functools.partial(apply, "multiply"), x[:, None], y)), out)


def _copied(a: Any, *args: Any, **kwargs: Any) -> Any:
    del args, kwargs
    return wrap(plain(a).copy(), a.dtype)


def _of_matrices(function: Callable[..., Any]) -> Callable[..., SymbolicArray]:
    """A function of linear algebra, as JAX has it."""

    def of_matrices(*matrices: Any) -> SymbolicArray:
        return symbolic(jnp.asarray(function(*map(recorded, matrices))))

    return of_matrices


def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
    total = reduced("add", a, axis, dtype, None, keepdims, **more)
    return written(wrap(plain(total / (np.size(a) / max(np.size(total), 1)))), out)


def _variance(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **more: Any
) -> Any:
    _nothing_else("numpy.var", more)
    centred = wrap(plain(a)) - _mean(a, axis, keepdims=True)
    total = reduced("add", centred * centred, axis, dtype, None, keepdims)
    return written(wrap(plain(total / (np.size(a) / max(np.size(total), 1) - ddof))), out)


def _deviation(a: Any, *args: Any, **kwargs: Any) -> Any:
    return np.sqrt(_variance(a, *args, **kwargs))


def _with_dtype(name: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **more: Any) -> Any:
        return reduced(name, a, axis, dtype, out, *args, **more)

    return function


def _without_dtype(name: str) -> Callable[..., Any]:
    def function(a: Any, axis: Any = None, out: Any = None, *args: Any, **more: Any) -> Any:
        return reduced(name, a, axis, None, out, *args, **more)

    return function


def _astype(
    a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True
) -> SymbolicArray:
    del order, casting, subok
    kind = np.dtype(dtype)
    if not copy and kind == a.dtype:
        return a
    return wrap(each(lambda entry: converted(entry, kind), plain(a)), None if kind.kind == "O" else kind)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _with_dtype("add"),
    np.prod: _with_dtype("multiply"),
    np.max: _without_dtype("maximum"),
    np.min: _without_dtype("minimum"),
    np.all: _without_dtype("logical_and"),
    np.any: _without_dtype("logical_or"),
    np.mean: _mean,
    np.var: _variance,
    np.std: _deviation,
    np.dot: _dot,
    np.vdot: lambda a, b: _dot(np.ravel(a), np.ravel(b)),
    np.inner: lambda a, b: _dot(a, np.transpose(b)),
    np.outer: _outer,
    np.where: where,
    np.clip: clip,
    np.copy: _copied,
    np.linalg.cholesky: _of_matrices(jnp.linalg.cholesky),
    np.linalg.solve: _of_matrices(jnp.linalg.solve),
    np.linalg.inv: _of_matrices(jnp.linalg.inv),
    np.zeros_like: _like(0.0),
    np.ones_like: _like(1.0),
    np.empty_like: _like(0.0),
    np.full_like: _like(None),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
}
"""Functions of NumPy that are no ufuncs and do more than move entries; all others run as they are, on objects."""


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


for _name in ("sum", "prod", "max", "min", "all", "any", "mean", "var", "std", "dot", "clip"):
    setattr(SymbolicArray, _name, _method(FUNCTIONS[getattr(np, _name)]))
SymbolicArray.astype = _astype  # type: ignore[method-assign]
