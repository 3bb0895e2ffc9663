"""Operations of JAX that take entries of an array by their indices, put others in their place, or sort, by NumPy.

An array of indices holds, along its last axis, the first index of a window of the operand; its other axes are batches.
The dimension numbers say which axes of the operand those are, and where the axes of windows and batches lie.

Source: the operations gather and scatter of StableHLO.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sgmcmc_verification.checks.programs.elementwise import Rule, Values
from sgmcmc_verification.checks.programs.operations import Unsupported


def _places(
    shape: tuple[int, ...],
    indices: np.ndarray,
    axes: Sequence[int],
    batches: Sequence[tuple[int, int]],
    sizes: Sequence[int],
    window: Sequence[int],
    clip: bool,
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """For each batch and place of a window the index of its entry, and whether the window of a batch lies inside.

    Args:
        shape: of the operand.
        indices: of the first entries of windows; the last axis is as long as `axes`.
        axes: of the operand to which they belong.
        batches: axes of operand and indices that go together.
        sizes: of a window along each axis of the operand.
        window: axes of the operand that a window keeps.
        clip: move windows inside; an index of a window that lies outside is 0 otherwise.
    """
    of_batches = indices.shape[:-1]
    starts = [np.zeros(of_batches, np.int64) for _ in shape]
    for column, axis in enumerate(axes):
        starts[axis] = indices[..., column].astype(np.int64)
    for axis, of_indices in batches:
        line = [-1 if i == of_indices else 1 for i in range(len(of_batches))]
        starts[axis] = np.broadcast_to(np.arange(shape[axis]).reshape(line), of_batches)
    last = [n - size for n, size in zip(shape, sizes, strict=True)]
    if clip:
        starts = [np.clip(start, 0, most) for start, most in zip(starts, last, strict=True)]
    pairs = zip(starts, last, strict=True)
    inside = np.logical_and.reduce([np.ones(of_batches, bool), *((s >= 0) & (s <= most) for s, most in pairs)])
    found = []
    for axis, start in enumerate(starts):
        first = np.where(inside, start, 0).reshape(of_batches + (1,) * len(window))
        line = [-1 if axis == kept else 1 for kept in window]
        found.append(first + (np.arange(sizes[axis]).reshape(line) if axis in window else 0))
    return tuple(found), inside


def _is_clipped(mode: Any) -> bool:
    """True for indices that are moved inside; those that are promised to be there may be."""
    return mode.name in ("CLIP", "PROMISE_IN_BOUNDS")


def _gather(inputs: Values, params: Mapping[str, Any]) -> Values:
    operand, indices = inputs
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = [axis for axis in range(operand.ndim) if axis not in dropped]
    batches = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    axes, clip = numbers.start_index_map, _is_clipped(params["mode"])
    places, inside = _places(operand.shape, indices, axes, batches, sizes, window, clip)
    if operand.size == 0:
        raise Unsupported("windows of an empty array")
    count, filled = inside.ndim, operand[places]
    if not inside.all():
        fill = np.asarray(params["fill_value"]).astype(operand.dtype)
        filled = np.where(inside.reshape(inside.shape + (1,) * len(window)), filled, fill)
    return [np.moveaxis(filled, range(count, count + len(window)), numbers.offset_dims)]


def _scatter(change: Callable[..., None]) -> Rule:
    def rule(inputs: Values, params: Mapping[str, Any]) -> Values:
        operand, indices, updates = inputs
        numbers = params["dimension_numbers"]
        dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        window = [axis for axis in range(operand.ndim) if axis not in dropped]
        sizes = [1] * operand.ndim
        for axis, of_updates in zip(window, numbers.update_window_dims, strict=True):
            sizes[axis] = updates.shape[of_updates]
        batches = list(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        axes, clip = numbers.scatter_dims_to_operand_dims, params["mode"].name == "CLIP"
        places, inside = _places(operand.shape, indices, axes, batches, sizes, window, clip)
        count = inside.ndim
        values = np.moveaxis(updates, numbers.update_window_dims, range(count, count + len(window)))
        changed, shape = operand.copy(), inside.shape + tuple(sizes[axis] for axis in window)
        change(changed, tuple(np.broadcast_to(p, shape)[inside] for p in places), values[inside])
        return [changed]

    return rule


def _put(inputs: Values, params: Mapping[str, Any]) -> Values:
    """Of several values for one place the last, as in a loop over them. A function of old and new value is XLA's."""
    program = params["update_jaxpr"]
    if program is not None and program.outvars != program.invars[1:]:
        raise Unsupported("entries that become a function of what they were")
    return _scatter(operator.setitem)(inputs, params)


def _sorted(inputs: Values, params: Mapping[str, Any]) -> Values:
    """All inputs in the order of the first of them, with ties broken by the next ones that are keys, and stable."""
    axis = params["dimension"]
    order = np.lexsort(inputs[: params["num_keys"]][::-1], axis=axis)
    return [np.take_along_axis(x, order, axis) for x in inputs]


RULES: Mapping[str, Rule] = {
    "gather": _gather,
    "scatter": _put,
    "scatter-add": _scatter(np.add.at),
    "scatter-max": _scatter(np.maximum.at),
    "scatter-min": _scatter(np.minimum.at),
    "scatter-mul": _scatter(np.multiply.at),
    "scatter-sub": _scatter(np.subtract.at),
    "sort": _sorted,
}
"""The rule of each of these operations that NumPy evaluates."""
