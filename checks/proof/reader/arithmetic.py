"""Arithmetic: smooth functions of numbers, entry by entry, and sums over axes."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader
from sgmcmc_verification.checks.proof.reader.values import Array, Equation, Unknown, each, folded
from sgmcmc_verification.checks.proof.series import Series, apply, raised

HALF = Fraction(1, 2)


def entrywise(function: Callable[..., Series]) -> Handler:
    """A handler of a function of real numbers."""

    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if equation.primitive.name in _INTEGERS and np.dtype(equation.outvars[0].aval.dtype).kind in "iub":
            raise Unreadable(f"integers of the state or of draws ({equation.primitive.name})")
        return [each(_on_series(function), *map(reader.symbols, inputs))]

    return handler


_INTEGERS = frozenset({"add", "sub", "mul", "div", "neg", "max", "min", "rem", "sign", "abs"})


def _on_series(function: Callable[..., Series]) -> Callable[..., Series]:
    def checked(*entries: Any) -> Series:
        if any(isinstance(entry, Unknown) for entry in entries):
            raise Unreadable("arithmetic on an integer of the state")
        return function(*entries)

    return checked


def _plus_one(a: Series) -> Series:
    return a + a.space.one


def _power(a: Series, b: Series) -> Series:
    """a^b: by Newton's series for a rational exponent, else exp(b log a)."""
    exponent = b.constant_term.rational if b.is_constant else None
    return raised(a, exponent) if exponent is not None else apply("exp", b * apply("log", a))


def _logaddexp(a: Series, b: Series) -> Series:
    return apply("log", apply("exp", a) + apply("exp", b))


def _integer_power(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    return [each(lambda a: raised(a, equation.params["y"]), reader.symbols(inputs[0]))]


def _reduced(function: Callable[[Series, Series], Series], unit: int) -> Handler:
    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        value = reader.symbols(inputs[0])
        return [folded(value, equation.params["axes"], function, reader.space.constant(unit))]

    return handler


def _cumulative(function: Callable[[Series, Series], Series]) -> Handler:
    def handler(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        axis, reverse = equation.params["axis"], equation.params["reverse"]
        rows = np.moveaxis(reader.symbols(inputs[0]), axis, 0)
        rows = (rows[::-1] if reverse else rows).copy()
        for i in range(1, len(rows)):
            rows[i] = each(function, rows[i - 1], rows[i])
        return [np.moveaxis(rows[::-1] if reverse else rows, 0, axis)]

    return handler


def product_of_arrays(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """`dot_general`."""
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    a, b = map(reader.symbols, inputs)
    free_a = [i for i in range(a.ndim) if i not in (*left, *left_batch)]
    free_b = [i for i in range(b.ndim) if i not in (*right, *right_batch)]
    size = int(np.prod([a.shape[i] for i in left_batch], dtype=int))
    inner = int(np.prod([a.shape[i] for i in left], dtype=int))
    x = a.transpose([*left_batch, *free_a, *left]).reshape(size, -1, inner)
    y = b.transpose([*right_batch, *free_b, *right]).reshape(size, -1, inner)
    out = np.empty((size, x.shape[1], y.shape[1]), object)
    for k, i, j in np.ndindex(*out.shape):
        out[k, i, j] = inner_product(reader, x[k, i], y[k, j])
    return [out.reshape([a.shape[i] for i in (*left_batch, *free_a)] + [b.shape[i] for i in free_b])]


def inner_product(reader: Reader, x: Array, y: Array) -> Series:
    """sum_i x_i y_i."""
    total = reader.space.zero
    for a, b in zip(x, y, strict=True):
        if not a.is_zero and not b.is_zero:
            total = total + a * b
    return total


def _same(a: Series) -> Series:
    return a


def _exponential(a: Series) -> Series:
    value = apply("exp", a)
    a.space.exponentials.append(value)
    return value


def _logistic(a: Series) -> Series:
    value = apply("logistic", a)
    a.space.shares.append(value)
    return value


def _quotient(a: Series, b: Series) -> Series:
    """a / b; 1 / (1 + exp(..)) is a value of the logistic function."""
    if a.is_zero:
        return a
    value, one = a * raised(b, -1), a.space.one
    if a.same(one) and any((b - one).same(each) for each in a.space.exponentials):
        a.space.shares.append(value)
    return value


_FUNCTIONS: dict[str, Callable[..., Series]] = {
    "add": lambda a, b: a + b,
    "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "square": lambda a: a * a,
    "div": _quotient,
    "sqrt": lambda a: raised(a, HALF) if not a.is_zero else a,
    "rsqrt": lambda a: raised(a, -HALF),
    "cbrt": lambda a: raised(a, Fraction(1, 3)),
    "pow": _power,
    "exp": _exponential,
    "exp2": lambda a: apply("exp", a * apply("log", a.space.constant(2))),
    "expm1": lambda a: apply("exp", a) - a.space.one,
    "log": lambda a: apply("log", a),
    "log1p": lambda a: apply("log", _plus_one(a)),
    "tanh": lambda a: apply("tanh", a),
    "logistic": _logistic,
    "sin": lambda a: apply("sin", a),
    "cos": lambda a: apply("cos", a),
    "tan": lambda a: apply("sin", a) * raised(apply("cos", a), -1),
    "sinh": lambda a: (apply("exp", a) - apply("exp", -a)).scaled(HALF),
    "cosh": lambda a: (apply("exp", a) + apply("exp", -a)).scaled(HALF),
    "atan": lambda a: apply("atan", a),
    "erf": lambda a: apply("erf", a),
    "erfc": lambda a: a.space.one - apply("erf", a),
    "logaddexp": _logaddexp,
    "copy": _same,
    "copy_p": _same,
    "stop_gradient": _same,
    "reduce_precision": _same,
    "real": _same,
}

ARITHMETIC: dict[str, Handler] = {
    **{name: entrywise(function) for name, function in _FUNCTIONS.items()},
    "integer_pow": _integer_power,
    "reduce_sum": _reduced(lambda a, b: a + b, 0),
    "reduce_prod": _reduced(lambda a, b: a * b, 1),
    "cumsum": _cumulative(lambda a, b: a + b),
    "cumprod": _cumulative(lambda a, b: a * b),
    "dot_general": product_of_arrays,
}
