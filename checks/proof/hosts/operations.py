"""The functions of NumPy, by their names, on single numbers of JAX."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from sgmcmc_verification.checks.proof.hosts.decisions import refuse

Operation = Callable[..., Any]


def _log_over(base: float) -> Operation:
    return lambda a: lax.div(lax.log(a), np.asarray(math.log(base), a.dtype)[()])


def _true(a: Any) -> Any:
    del a
    return np.True_


def _false(a: Any) -> Any:
    del a
    return np.False_


def _hypot(a: Any, b: Any) -> Any:
    return lax.sqrt(lax.add(lax.mul(a, a), lax.mul(b, b)))


REAL: dict[str, Operation] = {
    "divide": lax.div,
    "sqrt": lax.sqrt,
    "cbrt": lax.cbrt,
    "exp": lax.exp,
    "exp2": lax.exp2,
    "expm1": lax.expm1,
    "log": lax.log,
    "log1p": lax.log1p,
    "log2": _log_over(2.0),
    "log10": _log_over(10.0),
    "sin": lax.sin,
    "cos": lax.cos,
    "tan": lax.tan,
    "sinh": lax.sinh,
    "cosh": lax.cosh,
    "tanh": lax.tanh,
    "arctan": lax.atan,
    "hypot": _hypot,
    "logaddexp": lambda a, b: lax.log(lax.add(lax.exp(a), lax.exp(b))),
    "float_power": lax.pow,
    "reciprocal": lambda a: lax.div(np.ones((), a.dtype)[()], a),
    "floor": lax.floor,
    "ceil": lax.ceil,
    "rint": lambda a: lax.round(a, lax.RoundingMethod.TO_NEAREST_EVEN),
}
"""Functions whose value is real, of integers too."""
KEEPING: dict[str, Operation] = {
    "add": lax.add,
    "subtract": lax.sub,
    "multiply": lax.mul,
    "negative": lax.neg,
    "positive": lambda a: a,
    "conjugate": lambda a: a,
    "power": lambda a, b: lax.pow(a, b) if np.dtype(a.dtype).kind == "f" else jnp.power(a, b),
    "square": lambda a: lax.mul(a, a),
    "absolute": lax.abs,
    "fabs": lax.abs,
    "sign": lax.sign,
    "maximum": lax.max,
    "minimum": lax.min,
    "fmax": lax.max,
    "fmin": lax.min,
    "remainder": jnp.remainder,
    "floor_divide": jnp.floor_divide,
}
"""Functions whose value is of the type of the arguments."""
COMPARING: dict[str, Operation] = {
    "less": lax.lt,
    "less_equal": lax.le,
    "greater": lax.gt,
    "greater_equal": lax.ge,
    "equal": lax.eq,
    "not_equal": lax.ne,
    "isfinite": _true,  # nothing overflows at a generic point
    "isnan": _false,
    "isinf": _false,
}
LOGICAL: dict[str, Operation] = {
    "logical_and": lax.bitwise_and,
    "logical_or": lax.bitwise_or,
    "logical_xor": lax.bitwise_xor,
    "logical_not": lax.bitwise_not,
}
BITS = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not"}
"""Functions of bits that are read of booleans."""
KEEP_SIGN = frozenset({"add", "multiply", "divide", "sqrt", "cbrt", "power", "float_power", "square", "reciprocal"})
"""Functions whose value is positive where the arguments are."""


def is_known(value: Any) -> bool:
    """True for a number of the program, False for one of JAX."""
    return isinstance(value, bool | int | float | np.generic)


def applied(name: str, values: list[Any]) -> Any:
    """A function of NumPy of numbers, each a scalar of JAX or a number of the program.

    Raises:
        Unreadable: if it is not known here, or of integers and booleans of which it is not.
    """
    if name in ("isfinite", "isnan", "isinf"):
        return COMPARING[name](values[0])
    if all(map(is_known, values)):
        return getattr(np, name)(*values)
    common = np.result_type(*(value if type(value) in (bool, int, float) else value.dtype for value in values))
    if name in BITS:
        if common != np.bool_:
            raise refuse(f"the bits of an integer ({name})")
        name = BITS[name]
    if name in LOGICAL:
        return LOGICAL[name](*(cast(value, np.dtype(bool)) for value in values))
    if name in REAL and common.kind in "biu":
        common = np.dtype(np.float64)
    operation = REAL.get(name) or KEEPING.get(name) or COMPARING.get(name)
    if operation is None or common.kind not in "biuf":
        raise refuse(f"numpy.{name}")
    if common.kind == "b" and name in ("add", "multiply", "maximum", "minimum"):
        return LOGICAL["logical_or" if name in ("add", "maximum") else "logical_and"](*values)
    if name == "power" and common.kind == "f" and _is_whole(values[1]):
        return lax.integer_pow(cast(values[0], common), int(values[1]))
    return operation(*(cast(value, common) for value in values))


def _is_whole(value: Any) -> bool:
    return is_known(value) and float(value) == int(value)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as one of another type."""
    if is_known(value):
        return np.asarray(value).astype(dtype)[()]
    if value.dtype == dtype:
        return value
    if dtype.kind == "b":
        return lax.ne(value, np.zeros((), value.dtype)[()])
    if np.dtype(value.dtype).kind == "b":
        return lax.select_n(value, *(np.asarray(k, dtype)[()] for k in (0, 1)))
    return lax.convert_element_type(value, dtype)
