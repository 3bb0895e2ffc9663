"""A recorder of what a torch step does to numbers that are not known: its operations, followed below autograd.

The step runs on tensors of arbitrary numbers. Beside the memory of each tensor lies an array of objects, of the same
size, that says what its numbers stand for; each operation is carried out on both. A view shares its memory with that
which it is a view of, and so it does with the objects: what is written in place is seen wherever it is seen in torch.
Numbers leave torch for Python (`item`, `bool`) only where they are known, and an operation that is not known here ends
the reading. Arithmetic on the objects is the reader's (`Algebra`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import numpy as np
import torch
from torch.distributions import Distribution
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from sgmcmc_verification.samplers.adapters.common import Foreign

Array = np.ndarray[Foreign, Foreign]


class Algebra(Protocol):
    """Arithmetic on arrays of objects, which stand for numbers."""

    def apply(self, name: str, *arrays: Foreign) -> Array:
        """A function of NumPy, entry by entry, with broadcasting."""
        ...

    def where(self, condition: Foreign, yes: Foreign, no: Foreign) -> Array:
        """`numpy.where`."""
        ...

    def reduced(self, name: str, array: Array, axes: Sequence[int] | None, keepdims: bool) -> Array:
        """A function of two numbers folded over axes; all of them for None."""
        ...

    def product(self, a: Array, b: Array) -> Array:
        """The product of matrices and vectors."""
        ...

    def known(self, entry: Foreign) -> Foreign:
        """The number or truth of an entry in Python; raises where it is not known."""
        ...

    def constants(self, numbers: Array) -> Array:
        """Objects for numbers; those of the step size stand for it."""
        ...

    def symbols_in(self, value: Foreign) -> Foreign:
        """An array of the objects in a value of Python or NumPy; None if there are none."""
        ...

    def of_scalar(self, value: float) -> Foreign:
        """The object of a number that comes from Python: itself, or what the step size became; the same number."""
        ...

    def converted(self, array: Array, dtype: str) -> Array:
        """The objects as numbers of another type."""
        ...

    def number(self, value: float, entry: Foreign) -> float:
        """A float of a value that stands for what an entry does."""
        ...

    def nobody(self) -> Foreign:
        """The object of a number with which nothing may be computed."""
        ...

    def array(self, array: Array, dtype: str) -> Foreign:
        """The objects as an array of NumPy that stands for numbers of a type."""
        ...

    def refuse(self, reason: str) -> Exception:
        """The error of what cannot be read."""
        ...


class Recorder(TorchDispatchMode):
    """Follow all operations of torch in a context.

    Args:
        algebra: of the objects.
    """

    def __init__(self, algebra: Algebra) -> None:
        super().__init__()
        self.algebra = algebra
        self.memories: dict[int, tuple[torch.UntypedStorage, Array, torch.dtype]] = {}
        self.numbers = np.random.default_rng(0)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: nothing is compiled here."""
        return False

    # Tensors and what they stand for ------------------------------------------------------------------------------

    def to_tensor(self, array: Foreign) -> torch.Tensor | None:
        """A new tensor of arbitrary numbers that stands for an array of objects; None for an array of numbers."""
        if isinstance(array, np.ndarray) and not np.ndarray.view(array, np.ndarray).dtype.hasobject:
            return None
        entries = np.array(array, object, subok=False)
        kind = getattr(torch, str(getattr(array, "dtype", np.dtype(float))))
        values = 0.5 + self.numbers.random(entries.shape)
        tensor = torch.from_numpy(values).to(kind).clone() if entries.ndim else torch.tensor(float(values), dtype=kind)
        self.objects(tensor)[...] = entries
        return tensor

    def to_array(self, tensor: torch.Tensor) -> Foreign:
        """Objects for a tensor, a copy."""
        if not self.is_followed(tensor):
            return None
        return self.algebra.array(self.objects(tensor).copy(), str(tensor.dtype).partition(".")[2])

    def is_followed(self, tensor: torch.Tensor) -> bool:
        """True if the memory of a tensor has objects beside it."""
        return tensor.untyped_storage()._cdata in self.memories

    def objects(self, tensor: torch.Tensor) -> Array:
        """The objects beside the memory of a tensor, in its shape; made of its numbers where there are none yet."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.memories:
            flat = torch.empty(0, dtype=tensor.dtype).set_(storage)  # pyright: ignore[reportArgumentType]
            numbers = np.array(flat.tolist(), str(tensor.dtype).partition(".")[2])
            self.memories[storage._cdata] = storage, self.algebra.constants(numbers), tensor.dtype
        _, entries, kind = self.memories[storage._cdata]
        if kind != tensor.dtype:
            raise self.algebra.refuse(f"the memory of numbers of {kind} as {tensor.dtype}")
        strides = [step * entries.itemsize for step in tensor.stride()]
        start = entries[tensor.storage_offset() :]
        return np.lib.stride_tricks.as_strided(start, tuple(tensor.shape), strides, writeable=True)

    # Operations ---------------------------------------------------------------------------------------------------

    def __torch_dispatch__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, func: Foreign, types: tuple, args: Sequence[Foreign] = (), kwargs: dict[str, Foreign] | None = None
    ) -> Foreign:
        del types
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        if torch.Tag.nondeterministic_seeded in func.tags:
            return self._foreign_draw(func, args, kwargs)
        if name in NUMBERS_LEAVE and self._touched(args):
            return self.algebra.known(self.objects(args[0]).reshape(-1)[0])
        if _is_view(func) or name in KEEPING_PLACES:
            return func(*args, **kwargs)
        if not self._touched((*args, *kwargs.values())):
            return func(*args, **kwargs)
        if self._is_bytes(args):
            return self._copied_bytes(func, name, args, kwargs)
        return self._followed(func, name, args, kwargs)

    def _is_bytes(self, args: Sequence[Foreign]) -> bool:
        """True for the memory of numbers looked at as bytes, as the copy of a whole storage does."""
        return any(
            isinstance(a, torch.Tensor)
            and a.dtype == torch.uint8
            and self.is_followed(a)
            and self.memories[a.untyped_storage()._cdata][2] != torch.uint8
            for a in args
        )

    def _copied_bytes(self, func: Foreign, name: str, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> Foreign:
        source = args[0] if name == "clone" else args[1] if name == "copy_" else None
        if not isinstance(source, torch.Tensor) or source.numel() != source.untyped_storage().nbytes():
            raise self.algebra.refuse(f"torch.{name} of a part of the memory of numbers")
        _, entries, kind = self.memories[source.untyped_storage()._cdata]
        out = func(*args, **kwargs)
        if out.untyped_storage().nbytes() != source.untyped_storage().nbytes():
            raise self.algebra.refuse(f"torch.{name} of a part of the memory of numbers")
        self.memories[out.untyped_storage()._cdata] = out.untyped_storage(), entries.copy(), kind
        return out

    def _foreign_draw(self, func: Foreign, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> Foreign:
        """Numbers of torch's own generator: a constructor may draw what is replaced; nobody may compute with them."""
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if not isinstance(out, torch.Tensor):
            raise self.algebra.refuse(f"torch.{name}, which draws from a generator that is not the one of the step,")
        self.objects(out)[...] = self.algebra.nobody()
        return out

    def _touched(self, values: Sequence[Foreign]) -> bool:
        """True if what is not known is among the arguments."""
        for value in values:
            if isinstance(value, torch.Tensor):
                if self.is_followed(value) or self._holds_steps(value):
                    return True
            elif isinstance(value, list | tuple):
                if self._touched(value):
                    return True
            elif isinstance(value, float) and self.algebra.of_scalar(value) is not value:
                return True
        return False

    def _holds_steps(self, tensor: torch.Tensor) -> bool:
        few = tensor.numel() <= FEW and tensor.is_floating_point()
        numbers = tensor.detach().reshape(-1).tolist() if few else []
        return any(self.algebra.of_scalar(number) is not number for number in numbers)

    def _followed(self, func: Foreign, name: str, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> Foreign:
        if name.startswith("_foreach_"):
            return self._foreach(func, name, args, kwargs)
        base = ALIASES.get(name.rstrip("_"), name.rstrip("_"))
        rule = RULES.get(base)
        if rule is None or "out" in kwargs:
            raise self.algebra.refuse(f"torch.{name}")
        given = [self._argument(value) for value in args]
        named = {key: self._argument(value) for key, value in kwargs.items() if key not in PLACES}
        found = rule(self.algebra, *given, **named)
        out = func(*args, **kwargs)
        self._stands(out, found, in_place=name.endswith("_"))
        return out

    def _stands(self, out: torch.Tensor, found: Array, in_place: bool) -> None:
        """Say what the outcome of an operation stands for."""
        if not in_place:
            self.memories.pop(out.untyped_storage()._cdata, None)
        entries = np.asarray(found, object)
        target = self.objects(out)
        if not in_place and target.shape != entries.shape:
            raise self.algebra.refuse("an operation of torch whose outcome has another shape than was read")
        target[...] = self.algebra.converted(entries, str(out.dtype).partition(".")[2])

    def _argument(self, value: Foreign) -> Foreign:
        """Objects for a tensor, or a number of Python that the step size is in; else the value itself."""
        if isinstance(value, torch.Tensor):
            return self.objects(value).copy()
        if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
            return [self._argument(item) for item in value]
        return self.algebra.of_scalar(value) if isinstance(value, float) else value

    def _foreach(self, func: Foreign, name: str, args: Sequence[Foreign], kwargs: dict[str, Foreign]) -> Foreign:
        """An operation on lists, one member after the other."""
        single = ALIASES.get(name.removeprefix("_foreach_").rstrip("_"), name.removeprefix("_foreach_").rstrip("_"))
        rule = RULES.get(single)
        if rule is None:
            raise self.algebra.refuse(f"torch.{name}")
        member = lambda value, i: self._argument(value[i] if isinstance(value, list | tuple) else value)
        found = []
        for i in range(len(args[0])):
            given = [member(value, i) for value in args]
            found.append(rule(self.algebra, *given, **{key: member(v, i) for key, v in kwargs.items()}))
        out = func(*args, **kwargs)
        for tensor, entries in zip(args[0] if name.endswith("_") else out, found, strict=True):
            self._stands(tensor, entries, in_place=name.endswith("_"))
        return out


class Items(TorchFunctionMode):
    """A context in which numbers cross from torch to Python and NumPy, and back, with what they stand for.

    `tensor.item()` is a float that stands for what the tensor does, `tensor.numpy()` an array of objects, a copy, and
    `torch.tensor(array)` a tensor of what is in the array. So is `torch.from_numpy(array)`, which no mode of torch
    sees, and which shares no memory here. Arguments of `torch.distributions` are not validated: that real ones are
    right a real step shows.

    Args:
        recorder: that knows it.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.from_numpy = torch.from_numpy
        self.validates = Distribution._validate_args

    def __enter__(self) -> Self:
        torch.from_numpy = self._from_numpy
        Distribution.set_default_validate_args(False)
        return super().__enter__()

    def __exit__(self, *error: Foreign) -> None:
        torch.from_numpy = self.from_numpy
        Distribution.set_default_validate_args(self.validates)
        super().__exit__(*error)

    def _from_numpy(self, array: Foreign) -> torch.Tensor:
        symbols = self.recorder.algebra.symbols_in(array)
        made = None if symbols is None else self.recorder.to_tensor(symbols)
        return self.from_numpy(array) if made is None else made

    def __torch_function__(
        self, func: Foreign, types: tuple, args: Sequence[Foreign] = (), kwargs: dict[str, Foreign] | None = None
    ) -> Foreign:
        del types
        kwargs = kwargs or {}
        if func in MAKING_TENSORS:
            symbols = self.recorder.algebra.symbols_in(args[0])
            made = None if symbols is None else self.recorder.to_tensor(symbols)
            return func(*args, **kwargs) if made is None else made.to(kwargs.get("dtype") or made.dtype)
        if func not in MAKING_NUMBERS or not self.recorder.is_followed(args[0]):
            return func(*args, **kwargs)
        if func not in ITEMS:
            array = self.recorder.to_array(args[0].detach())
            return array.tolist() if func is torch.Tensor.tolist else array
        if not args[0].is_floating_point():
            return func(*args, **kwargs)
        number = args[0].detach().reshape(-1).tolist()[0]
        return self.recorder.algebra.number(number, self.recorder.objects(args[0]).reshape(-1)[0])


MAKING_TENSORS = frozenset({torch.tensor, torch.as_tensor, torch.asarray})
ITEMS = frozenset({torch.Tensor.item, torch.Tensor.__float__})
MAKING_NUMBERS = frozenset({*ITEMS, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.tolist})
"""Functions that make tensors of what Python or NumPy has, and those that make of tensors what these have."""
FEW = 4
"""Numbers of a tensor that are looked at one by one, for what became of the step size in Python."""
NUMBERS_LEAVE = frozenset({"_local_scalar_dense", "item", "is_nonzero", "equal"})
"""Operations that make a number of Python."""
KEEPING_PLACES = frozenset({"detach", "set_", "new_empty", "new_zeros", "new_ones", "new_empty_strided"})
"""Operations whose outcome is memory that is there already, or new memory without what is followed."""
PLACES = frozenset({"memory_format", "layout", "device", "pin_memory", "non_blocking", "implicit", "generator"})
"""Arguments that say where numbers are kept."""
ALIASES = {
    "true_divide": "div",
    "absolute": "abs",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "clip": "clamp",
    "_reshape_copy": "view_copy",
}


def _is_view(func: Foreign) -> bool:
    returned = [value.alias_info for value in func._schema.returns]
    return any(info is not None and not info.is_write for info in returned)


def _plain(name: str) -> Callable[..., Array]:
    return lambda algebra, *arrays: algebra.apply(name, *arrays)


def _scaled(name: str) -> Callable[..., Array]:
    """`add` and `sub`, with a factor."""

    def rule(algebra: Algebra, a: Foreign, b: Foreign, alpha: Foreign = 1) -> Array:
        return algebra.apply(
            name, a, b if isinstance(alpha, int) and alpha == 1 else algebra.apply("multiply", b, alpha)
        )

    return rule


def _rsub(algebra: Algebra, a: Foreign, b: Foreign, alpha: Foreign = 1) -> Array:
    return algebra.apply("subtract", b, algebra.apply("multiply", a, alpha))


def _add_product(name: str) -> Callable[..., Array]:
    """`addcmul` and `addcdiv`."""

    def rule(algebra: Algebra, a: Foreign, b: Foreign, c: Foreign, value: Foreign = 1) -> Array:
        return algebra.apply("add", a, algebra.apply("multiply", value, algebra.apply(name, b, c)))

    return rule


def _lerp(algebra: Algebra, a: Foreign, b: Foreign, weight: Foreign) -> Array:
    return algebra.apply("add", a, algebra.apply("multiply", weight, algebra.apply("subtract", b, a)))


def _div(algebra: Algebra, a: Foreign, b: Foreign, rounding_mode: Foreign = None) -> Array:
    if rounding_mode is not None:
        raise algebra.refuse("torch.div with rounding")
    return algebra.apply("divide", a, b)


def _rsqrt(algebra: Algebra, a: Foreign) -> Array:
    return algebra.apply("reciprocal", algebra.apply("sqrt", a))


def _sigmoid(algebra: Algebra, a: Foreign) -> Array:
    return algebra.apply("reciprocal", algebra.apply("add", 1.0, algebra.apply("exp", algebra.apply("negative", a))))


def _clamp(algebra: Algebra, a: Foreign, min: Foreign = None, max: Foreign = None) -> Array:
    found = a if min is None else algebra.apply("maximum", a, min)
    return found if max is None else algebra.apply("minimum", found, max)


def _same(algebra: Algebra, a: Foreign, **kwargs: Foreign) -> Array:
    del algebra, kwargs
    return a


def _copied(algebra: Algebra, a: Foreign, b: Foreign, *args: Foreign, **kwargs: Foreign) -> Array:
    del algebra, args, kwargs
    return np.broadcast_to(np.asarray(b, object), np.shape(a))


def _filled(algebra: Algebra, a: Foreign, value: Foreign, **kwargs: Foreign) -> Array:
    del algebra, kwargs
    found = np.empty(np.shape(a), object)
    found[...] = value.item() if isinstance(value, np.ndarray) else value
    return found


def _zeros(algebra: Algebra, a: Foreign, **kwargs: Foreign) -> Array:
    return _filled(algebra, a, 0.0, **kwargs)


def _ones(algebra: Algebra, a: Foreign, **kwargs: Foreign) -> Array:
    return _filled(algebra, a, 1.0, **kwargs)


def _axes(dim: Foreign) -> Sequence[int] | None:
    return (
        None if dim is None or (isinstance(dim, list | tuple) and not dim) else [dim] if isinstance(dim, int) else dim
    )


def _sum(algebra: Algebra, a: Foreign, dim: Foreign = None, keepdim: bool = False, **kwargs: Foreign) -> Array:
    del kwargs
    return algebra.reduced("add", a, _axes(dim), keepdim)


def _mean(algebra: Algebra, a: Foreign, dim: Foreign = None, keepdim: bool = False, **kwargs: Foreign) -> Array:
    total = _sum(algebra, a, dim, keepdim, **kwargs)
    return algebra.apply("divide", total, float(np.size(a) / max(np.size(total), 1)))


def _norm(
    algebra: Algebra, a: Foreign, ord: Foreign = 2, dim: Foreign = None, keepdim: bool = False, **kwargs: Foreign
) -> Array:
    del kwargs
    if ord != 2:
        raise algebra.refuse(f"a norm of order {ord}")
    return algebra.apply("sqrt", algebra.reduced("add", algebra.apply("square", a), _axes(dim), keepdim))


def _product(algebra: Algebra, a: Foreign, b: Foreign) -> Array:
    return algebra.product(a, b)


def _joined(function: Callable[..., Array]) -> Callable[..., Array]:
    def rule(algebra: Algebra, arrays: Foreign, dim: int = 0) -> Array:
        del algebra
        return function([np.asarray(array, object) for array in arrays], axis=dim)

    return rule


def _sign(algebra: Algebra, a: Foreign) -> Array:
    return algebra.apply("sign", a)


def _where(algebra: Algebra, condition: Foreign, yes: Foreign, no: Foreign) -> Array:
    return algebra.where(condition, yes, no)


def _masked(algebra: Algebra, a: Foreign, mask: Foreign, value: Foreign) -> Array:
    return algebra.where(mask, value, a)


RULES: dict[str, Callable[..., Array]] = {
    "add": _scaled("add"),
    "sub": _scaled("subtract"),
    "rsub": _rsub,
    "mul": _plain("multiply"),
    "div": _div,
    "pow": _plain("power"),
    "maximum": _plain("maximum"),
    "minimum": _plain("minimum"),
    "neg": _plain("negative"),
    "abs": _plain("absolute"),
    "sqrt": _plain("sqrt"),
    "square": _plain("square"),
    "reciprocal": _plain("reciprocal"),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "sign": _sign,
    "sgn": _sign,
    **{name: _plain(name) for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: _plain(name) for name in ("isfinite", "isnan")},
    **{
        name: _plain(other)
        for name, other in {
            "lt": "less",
            "le": "less_equal",
            "gt": "greater",
            "ge": "greater_equal",
            "eq": "equal",
            "ne": "not_equal",
            "logical_and": "logical_and",
            "logical_or": "logical_or",
            "logical_not": "logical_not",
        }.items()
    },
    "addcmul": _add_product("multiply"),
    "addcdiv": _add_product("divide"),
    "lerp": _lerp,
    "clamp": _clamp,
    "clamp_min": lambda algebra, a, low: algebra.apply("maximum", a, low),
    "clamp_max": lambda algebra, a, high: algebra.apply("minimum", a, high),
    "where": _where,
    "masked_fill": _masked,
    "copy": _copied,
    "fill": _filled,
    "zero": _zeros,
    "zeros_like": _zeros,
    "ones_like": _ones,
    "empty_like": _zeros,
    "full_like": _filled,
    "clone": _same,
    "_to_copy": _same,
    "lift_fresh_copy": _same,
    "detach_copy": _same,
    "sum": _sum,
    "mean": _mean,
    "linalg_vector_norm": _norm,
    "dot": _product,
    "vdot": _product,
    "mv": _product,
    "mm": _product,
    "bmm": _product,
    "stack": _joined(np.stack),
    "cat": _joined(np.concatenate),
}
"""Operation of torch -> what it does to objects."""
