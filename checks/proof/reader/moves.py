"""Primitives that only move entries: where an entry ends up is all they do."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from checks.proof.errors import Unreadable
from checks.proof.reader.interpreter import Handler, Reader
from checks.proof.reader.values import Array, Equation, bind, is_symbolic, objects


def _of_arrays(function: Callable[[Equation, list[Array]], Any]) -> Handler:
    """A handler of what NumPy does with arrays of anything."""

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if any(map(is_symbolic, inputs)):
            inputs = [reader.symbols(value) for value in inputs]
        out = function(equation, [np.asarray(value) for value in inputs])
        return [as_array(value) for value in out] if equation.primitive.multiple_results else [as_array(out)]

    return handler


def as_array(value: Any) -> Array:
    """An array, also of what NumPy took out of an object array."""
    return value if isinstance(value, np.ndarray) else objects([value], ())


def _broadcast(equation: Equation, inputs: list[Array]) -> Array:
    shape, places = equation.params["shape"], equation.params["broadcast_dimensions"]
    inner = [1] * len(shape)
    for place, size in zip(places, inputs[0].shape, strict=True):
        inner[place] = size
    return np.broadcast_to(inputs[0].reshape(inner), shape)


def _slice(equation: Equation, inputs: list[Array]) -> Array:
    starts, stops = equation.params["start_indices"], equation.params["limit_indices"]
    strides = equation.params["strides"] or (1,) * len(starts)
    return inputs[0][tuple(slice(*s) for s in zip(starts, stops, strides, strict=True))]


def _split(equation: Equation, inputs: list[Array]) -> list[Array]:
    return np.split(inputs[0], np.cumsum(equation.params["sizes"])[:-1], equation.params["axis"])


def _iota(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    del inputs
    shape, axis = equation.params["shape"], equation.params["dimension"]
    line = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return [reader.constant(np.broadcast_to(line, shape).astype(equation.params["dtype"]))]


def _of_positions(data: Sequence[int]) -> Handler:
    """A handler that runs the primitive on the positions of its entries; `data` are the operands with entries."""

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if any(is_symbolic(value) for i, value in enumerate(inputs) if i not in data):
            raise Unreadable(f"{equation.primitive.name} with an index that depends on the state or on draws")
        pool: list[Any] = [reader.space.zero]  # position 0: what is filled in where there is no entry
        operands = list(inputs)
        for i in data:
            array = reader.symbols(inputs[i])
            operands[i] = np.arange(len(pool), len(pool) + array.size).reshape(array.shape)
            pool.extend(array.ravel())
        with jax.ensure_compile_time_eval():
            where = np.asarray(bind(equation, operands))
        items = [pool[i] if 0 < i < len(pool) else pool[0] for i in where.ravel()]
        return [objects(items, where.shape)]

    return handler


def _scatter_add(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """An update of one at each place in turn shows what it is added to: scattering is linear."""
    operand, updates = reader.symbols(inputs[0]), reader.symbols(inputs[2])
    if is_symbolic(inputs[1]):
        raise Unreadable("scatter-add with an index that depends on the state or on draws")
    total = operand.ravel().copy()
    for k, item in enumerate(updates.ravel()):
        one = np.zeros(updates.size)
        one[k] = 1.0
        with jax.ensure_compile_time_eval():
            hit = np.asarray(bind(equation, [np.zeros(operand.shape), inputs[1], one.reshape(updates.shape)]))
        for place in np.flatnonzero(hit.ravel()):
            total[place] = total[place] + item
    return [total.reshape(operand.shape)]


def _reshaped(equation: Equation, inputs: list[Array]) -> Array:
    return inputs[0].reshape(equation.outvars[0].aval.shape)


_ARRAYS: dict[str, Callable[[Equation, list[Array]], Any]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshaped,
    "squeeze": _reshaped,
    "expand_dims": _reshaped,
    "transpose": lambda equation, inputs: inputs[0].transpose(equation.params["permutation"]),
    "slice": _slice,
    "split": _split,
    "concatenate": lambda equation, inputs: np.concatenate(inputs, axis=equation.params["dimension"]),
    "stack": lambda equation, inputs: np.stack(inputs, axis=equation.params.get("axis", 0)),
    "unstack": lambda equation, inputs: list(np.moveaxis(inputs[0], equation.params["axis"], 0)),
    "rev": lambda equation, inputs: np.flip(inputs[0], equation.params["dimensions"]),
    "tile": lambda equation, inputs: np.tile(inputs[0], equation.params["reps"]),
}

MOVES: dict[str, Handler] = {
    **{name: _of_arrays(function) for name, function in _ARRAYS.items()},
    "iota": _iota,
    "dynamic_slice": _of_positions((0,)),
    "gather": _of_positions((0,)),
    "pad": _of_positions((0, 1)),
    "dynamic_update_slice": _of_positions((0, 1)),
    "scatter": _of_positions((0, 2)),
    "scatter-add": _scatter_add,
    "scatter_add": _scatter_add,
}
