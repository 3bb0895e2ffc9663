"""Primitives that only move entries: where an entry ends up is all they do."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sgmcmc_verification.checks.programs.evaluation import bind
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader
from sgmcmc_verification.checks.proof.reader.values import Array, Equation, is_symbolic, objects


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


def _of_positions(data: Sequence[int], move: Callable[[Equation, list[Array]], Array]) -> Handler:
    """A handler that moves the positions of entries; `data` are the operands with entries, the others are indices."""

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if any(is_symbolic(value) for i, value in enumerate(inputs) if i not in data):
            raise Unreadable(f"{equation.primitive.name} with an index that depends on the state or on draws")
        pool: list[Any] = []
        operands = list(inputs)
        for i in data:
            array = reader.symbols(inputs[i])
            operands[i] = np.arange(len(pool), len(pool) + array.size).reshape(array.shape)
            pool.extend(array.ravel())
        where = move(equation, [np.asarray(value) for value in operands])
        return [objects([pool[i] for i in where.ravel()], where.shape)]

    return handler


def _clamped(starts: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """The slice of some sizes nearest to the starts that lies inside, as JAX takes it."""
    inside = [min(max(int(i), 0), n - m) for i, n, m in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(i, i + m) for i, m in zip(inside, sizes, strict=True))


def _dynamic_slice(equation: Equation, operands: list[Array]) -> Array:
    array, *starts = operands
    return array[_clamped(starts, array.shape, equation.params["slice_sizes"])]


def _dynamic_update_slice(equation: Equation, operands: list[Array]) -> Array:
    del equation
    array, update, *starts = operands
    out = array.copy()
    out[_clamped(starts, array.shape, update.shape)] = update
    return out


def _pad(equation: Equation, operands: list[Array]) -> Array:
    array, filling = operands
    for axis, (low, high, inner) in enumerate(equation.params["padding_config"]):
        rows = np.moveaxis(array, axis, 0)
        size = max(len(rows) + max(len(rows) - 1, 0) * inner + low + high, 0)
        out = np.full((size, *rows.shape[1:]), filling)
        for i, row in enumerate(rows):
            if 0 <= (place := low + i * (inner + 1)) < size:
                out[place] = row
        array = np.moveaxis(out, 0, axis)
    return array


def _gather(equation: Equation, operands: list[Array]) -> Array:
    """The slices of the operand at a table of starts, one for each entry of the batch of indices."""
    array, starts = operands
    numbers, sizes = equation.params["dimension_numbers"], tuple(equation.params["slice_sizes"])
    batch = starts.shape[:-1]
    batched = tuple(numbers.operand_batching_dims)
    dropped = (*numbers.collapsed_slice_dims, *batched)
    kept = [size for axis, size in enumerate(sizes) if axis not in dropped]
    out = np.empty((*batch, *kept), int)
    for place in np.ndindex(*batch):
        start = [0] * array.ndim
        for axis, index in zip(numbers.start_index_map, starts[place], strict=True):
            start[axis] = int(index)
        for axis, source in zip(batched, numbers.start_indices_batching_dims, strict=True):
            start[axis] = place[source]
        window = _clamped(start, array.shape, sizes)
        clips = equation.params["mode"] == jax.lax.GatherScatterMode.CLIP
        if not clips and [part.start for part in window] != start:
            raise Unreadable("gather out of bounds")
        out[place] = array[window].reshape(kept)
    # the axes of the slices go to the places that the equation names, those of the batch stay in order
    rank = len(batch) + len(kept)
    rest = [axis for axis in range(rank) if axis not in numbers.offset_dims]
    order = np.empty(rank, int)
    order[rest], order[list(numbers.offset_dims)] = range(len(batch)), range(len(batch), rank)
    return out.transpose(order)


def _bound(equation: Equation, operands: list[Array]) -> Array:
    """The primitive itself on positions."""
    with jax.ensure_compile_time_eval():
        return np.asarray(bind(equation, operands))


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
    "dynamic_slice": _of_positions((0,), _dynamic_slice),
    "gather": _of_positions((0,), _gather),
    "pad": _of_positions((0, 1), _pad),
    "dynamic_update_slice": _of_positions((0, 1), _dynamic_update_slice),
    "scatter": _of_positions((0, 2), _bound),
    "scatter-add": _scatter_add,
    "scatter_add": _scatter_add,
}
