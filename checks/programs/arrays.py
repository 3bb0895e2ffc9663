"""Operations of JAX on the shape of arrays, on parts and sums of them, by NumPy."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sgmcmc_verification.checks.programs.elementwise import Rule, Values, of_inputs


def _broadcast(inputs: Values, params: Mapping[str, Any]) -> Values:
    x, shape = inputs[0], [1] * len(params["shape"])
    for axis, place in enumerate(params["broadcast_dimensions"]):
        shape[place] = x.shape[axis]
    return [np.broadcast_to(x.reshape(shape), params["shape"])]


def _slice(inputs: Values, params: Mapping[str, Any]) -> Values:
    strides = params["strides"] or itertools.repeat(1)
    parts = zip(params["start_indices"], params["limit_indices"], strides, strict=False)
    return [inputs[0][tuple(slice(*part) for part in parts)]]


def _window(shape: tuple[int, ...], starts: Values, sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Slices of a window, moved into the array as XLA moves it."""
    first = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(first, sizes, strict=True))


def _dynamic_slice(inputs: Values, params: Mapping[str, Any]) -> Values:
    x, *starts = inputs
    return [x[_window(x.shape, starts, params["slice_sizes"])]]


def _updated(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> Any:
    changed = x.copy()
    changed[_window(x.shape, starts, update.shape)] = update
    return changed


def _iota(inputs: Values, params: Mapping[str, Any]) -> Values:
    del inputs
    shape, axis = params["shape"], params["dimension"]
    count = np.arange(shape[axis]).astype(params["dtype"])
    return [np.broadcast_to(count.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)]


def _dot_general(inputs: Values, params: Mapping[str, Any]) -> Values:
    """The product of two arrays: axes of batches, then what is left of the first, then of the second."""
    a, b = inputs
    (of_a, of_b), (batch_a, batch_b) = params["dimension_numbers"]
    left, right = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for i, j in (*zip(of_a, of_b, strict=True), *zip(batch_a, batch_b, strict=True)):
        right[j] = left[i]
    out = [left[i] for i in batch_a]
    out += [left[i] for i in range(a.ndim) if i not in (*of_a, *batch_a)]
    out += [right[j] for j in range(b.ndim) if j not in (*of_b, *batch_b)]
    return [np.einsum(a, left, b, right, out)]


def _reduced(function: Callable[..., Any]) -> Rule:
    return lambda inputs, params: [function(inputs[0], axis=tuple(params["axes"]))]


def _index(function: Callable[..., Any]) -> Rule:
    return lambda inputs, params: [function(inputs[0], axis=params["axes"][0])]


def _cumulative(function: Callable[..., Any]) -> Rule:
    def rule(inputs: Values, params: Mapping[str, Any]) -> Values:
        x, axis = inputs[0], params["axis"]
        x = np.flip(x, axis) if params["reverse"] else x
        total = function(x, axis)
        return [np.flip(total, axis) if params["reverse"] else total]

    return rule


def _pad(inputs: Values, params: Mapping[str, Any]) -> Values:
    """Entries around an array and between its own; a negative number of them takes away from it."""
    x, value = inputs
    sizes = [(n, *each) for n, each in zip(x.shape, params["padding_config"], strict=True)]
    spread = np.full([n + max(n - 1, 0) * between for n, _, _, between in sizes], value, x.dtype)
    spread[tuple(slice(None, None, 1 + between) for *_, between in sizes)] = x
    around = [(max(low, 0), max(high, 0)) for _, low, high, _ in sizes]
    wide = np.pad(spread, around, constant_values=value)
    pairs = zip(sizes, wide.shape, strict=True)
    return [wide[tuple(slice(max(-low, 0), n - max(-high, 0)) for (_, low, high, _), n in pairs)]]


def _split(inputs: Values, params: Mapping[str, Any]) -> Values:
    return np.split(inputs[0], np.cumsum(params["sizes"])[:-1], params["axis"])


RULES: Mapping[str, Rule] = {
    "argmax": _index(np.argmax),
    "argmin": _index(np.argmin),
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda inputs, params: [np.concatenate(inputs, params["dimension"])],
    "cummax": _cumulative(np.maximum.accumulate),
    "cummin": _cumulative(np.minimum.accumulate),
    "cumprod": _cumulative(np.cumprod),
    "cumsum": _cumulative(np.cumsum),
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": of_inputs(_updated),
    "iota": _iota,
    "pad": _pad,
    "reduce_and": _reduced(np.all),
    "reduce_max": _reduced(np.max),
    "reduce_min": _reduced(np.min),
    "reduce_or": _reduced(np.any),
    "reduce_prod": _reduced(np.prod),
    "reduce_sum": _reduced(np.sum),
    "reshape": lambda inputs, params: [np.reshape(inputs[0], params["new_sizes"])],
    "rev": lambda inputs, params: [np.flip(inputs[0], params["dimensions"])],
    "slice": _slice,
    "split": _split,
    "squeeze": lambda inputs, params: [np.squeeze(inputs[0], tuple(params["dimensions"]))],
    "stack": lambda inputs, params: [np.stack(inputs, params["axis"])],
    "transpose": lambda inputs, params: [np.transpose(inputs[0], params["permutation"])],
    "unstack": lambda inputs, params: list(np.moveaxis(inputs[0], params["axis"], 0)),
}
"""The rule of each operation on arrays that NumPy evaluates."""
