"""Operations of JAX on each element, by NumPy and SciPy."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

Values = Sequence[np.ndarray]
Rule = Callable[[Values, Mapping[str, Any]], Values]
"""The outputs of an operation, of its inputs and its parameters."""


def of_inputs(function: Callable[..., Any]) -> Rule:
    """The rule of an operation with one output, which has no parameters."""
    return lambda inputs, params: [function(*inputs)]


def _special(name: str) -> Rule:
    """A function of scipy.special, which is imported when it is first needed."""

    def function(x: np.ndarray) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(x)

    return of_inputs(function)


def _quotient(a: np.ndarray, b: np.ndarray) -> Any:
    """The quotient, of integers rounded towards 0; where it is undefined XLA's, which is -1."""
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    whole = np.where(b == 0, 1, b)
    rest = np.fmod(a, whole)
    return np.where(b == 0, -1, (a - rest) // whole)


def _remainder(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind not in "iu":
        return np.fmod(a, b)
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b)))


def _power(inputs: Values, params: Mapping[str, Any]) -> Values:
    """An integer power, by repeated squares as XLA has it: NumPy's differs by a rounding, and overflows for 1 / x^n."""
    x, left = inputs[0], abs(params["y"])
    product, square = np.ones_like(x), x
    while left:
        product = product * square if left & 1 else product
        square, left = square * square, left >> 1
    return [1 / product if params["y"] < 0 else product]


def _shifted(x: np.ndarray, by: np.ndarray, left: bool) -> Any:
    """A logical shift; by the number of bits or more it leaves 0."""
    bits = np.dtype(f"u{x.dtype.itemsize}")
    value, count = x.view(bits), by.astype(bits)
    inside = count < 8 * x.dtype.itemsize
    shift = np.left_shift if left else np.right_shift
    return np.where(inside, shift(value, np.where(inside, count, 0)), 0).astype(bits).view(x.dtype)


def _arithmetic_shift(a: np.ndarray, by: np.ndarray) -> Any:
    return np.right_shift(a, np.minimum(by.astype(np.uint64), 8 * a.dtype.itemsize - 1).astype(a.dtype))


def _round(inputs: Values, params: Mapping[str, Any]) -> Values:
    if int(params["rounding_method"]) == 1:  # ties to even
        return [np.rint(inputs[0])]
    return [np.trunc(inputs[0] + np.copysign(0.5, inputs[0]))]


def _selected(which: np.ndarray, *cases: np.ndarray) -> Any:
    if which.dtype == bool:
        return np.where(which, cases[1], cases[0])
    return np.choose(np.broadcast_to(which, cases[0].shape), cases)


def _converted(inputs: Values, params: Mapping[str, Any]) -> Values:
    """A conversion; of numbers outside the range of an integer the nearest in it, as XLA has it."""
    x, dtype = inputs[0], np.dtype(params["new_dtype"])
    if x.dtype.kind == "f" and dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        held = np.where(np.isnan(x), 0, x)
        low, high = held <= float(bounds.min), held >= float(bounds.max)
        inside = np.where(low | high, 0, held).astype(dtype)
        return [np.where(low, bounds.min, np.where(high, bounds.max, inside)).astype(dtype)]
    return [x.astype(dtype)]


_NUMPY: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "is_finite": np.isfinite, "log": np.log, "log1p": np.log1p,
    "neg": np.negative, "not": np.invert, "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "square": np.square, "tan": np.tan, "tanh": np.tanh,
    "add": np.add, "add_any": np.add, "and": np.bitwise_and, "atan2": np.arctan2, "eq": np.equal,
    "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less,
    "max": np.maximum, "min": np.minimum, "mul": np.multiply,
    "ne": np.not_equal, "nextafter": np.nextafter, "or": np.bitwise_or, "pow": np.power, "sub": np.subtract,
    "xor": np.bitwise_xor,
}  # fmt: skip
_SCIPY: Mapping[str, str] = {
    "erf": "erf", "erf_inv": "erfinv", "erfc": "erfc", "lgamma": "gammaln", "logistic": "expit",
}  # fmt: skip

RULES: Mapping[str, Rule] = {
    **{name: of_inputs(function) for name, function in _NUMPY.items()},
    **{name: _special(of) for name, of in _SCIPY.items()},
    "clamp": of_inputs(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "convert_element_type": _converted,
    "copy": lambda inputs, params: inputs,
    "copy_p": lambda inputs, params: inputs,
    "div": of_inputs(_quotient),
    "integer_pow": _power,
    "optimization_barrier": lambda inputs, params: inputs,
    "rem": of_inputs(_remainder),
    "round": _round,
    "rsqrt": of_inputs(lambda x: 1 / np.sqrt(x)),
    "select_n": of_inputs(_selected),
    "shift_left": of_inputs(partial(_shifted, left=True)),
    "shift_right_arithmetic": of_inputs(_arithmetic_shift),
    "stop_gradient": lambda inputs, params: inputs,
    "shift_right_logical": of_inputs(partial(_shifted, left=False)),
}
"""The rule of each operation on elements that NumPy evaluates."""
