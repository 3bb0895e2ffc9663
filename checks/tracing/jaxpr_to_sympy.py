"""From a traced JAX program to SymPy, so that a proof is about the code and not about a second transcription.

The program is traced in float64 and its jaxpr interpreted on NumPy arrays of SymPy expressions. Integers and booleans
stay numbers: everything that decides where an element goes (indices, masks) is concrete.
"""

# SymPy and tuple sums are typed too widely for these rules to say anything here.
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportReturnType=false, reportCallIssue=false, reportIndexIssue=false

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax.extend import core

from sgmcmc_verification.checks.programs.evaluation import bind
from sgmcmc_verification.checks.programs.operations import CALLS, called


class Untranslatable(Exception):
    """A primitive of the program has no SymPy counterpart here; the message names it."""


def to_sympy(function: Callable[[jax.Array], Any], symbols: Sequence[sp.Symbol]) -> Any:
    """The SymPy expressions that a function of one flat vector (n,) computes.

    Args:
        function: (n,) float64 -> array of any shape (or a pytree of arrays).
        symbols: n symbols for the entries of the vector.

    Returns:
        A scalar expression for shape (), else a `sympy.NDimArray`-free NumPy object array of expressions of the shape
        of the output; in the pytree of the output.

    Raises:
        Untranslatable: naming the primitive.
    """
    with jax.enable_x64(True):
        example = jax.ShapeDtypeStruct((len(symbols),), jnp.float64)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(example)
        flat = _evaluate(closed.jaxpr, closed.consts, [_objects(symbols)])
    values = [value.item() if value.ndim == 0 else value for value in map(_symbolic, flat)]
    return jax.tree.unflatten(jax.tree.structure(shape), values)


def exact(value: float) -> sp.Expr:
    """The rational that the author of a float literal meant: the simplest small fraction, else its shortest decimal.

    0.1 becomes 1/10 and 1.0 / 3.0 becomes 1/3; both round to the same float64 that the program holds.
    """
    value = float(value)
    if value != value:
        return sp.nan
    if value in (float("inf"), float("-inf")):
        return sp.oo if value > 0 else -sp.oo
    simple = Fraction(value).limit_denominator(10_000)
    if float(simple) == value:
        return sp.Rational(simple.numerator, simple.denominator)
    return sp.Rational(repr(value))


def symbolic_matrix(array: np.ndarray) -> sp.Matrix:
    """A SymPy matrix from an object array (n, m), or a column from (n,)."""
    return sp.Matrix(array.reshape(array.shape[0], -1).tolist())


def _objects(values: Sequence[Any]) -> np.ndarray:
    """A one-dimensional object array (NumPy would look inside some SymPy objects)."""
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _symbolic(value: Any) -> np.ndarray:
    """An object array of expressions; concrete numbers become exact ones."""
    array = np.asarray(value)
    if array.dtype == object:
        return array
    convert = (lambda v: sp.Integer(int(v))) if array.dtype.kind in "iub" else exact
    return _objects([convert(v) for v in array.ravel()]).reshape(array.shape)


def _concrete(value: Any, primitive: str) -> np.ndarray:
    """A plain NumPy array, from one or from an object array of numbers or decided relations."""
    array = np.asarray(value)
    if array.dtype != object:
        return array
    items = list(array.ravel())
    if all(item in (sp.true, sp.false, True, False) for item in items):
        return np.array([bool(item) for item in items], bool).reshape(array.shape)
    raise Untranslatable(f"{primitive}: an index or a mask depends on the variables")


def _is_symbolic(value: Any) -> bool:
    return np.asarray(value).dtype == object


def _constant(value: Any) -> Any:
    """Constants of the program: floats become exact, integers and booleans stay."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise Untranslatable("a random key")
    array = np.asarray(value)
    return _symbolic(array) if array.dtype.kind == "f" else array


def _evaluate(jaxpr, consts, args) -> list[Any]:
    environment: dict[Any, Any] = {}

    def read(variable):
        return _constant(variable.val) if isinstance(variable, core.Literal) else environment[variable]

    for variable, value in zip(jaxpr.constvars, consts, strict=True):
        environment[variable] = value if _is_symbolic(value) else _constant(value)
    for variable, value in zip(jaxpr.invars, args, strict=True):
        environment[variable] = value
    for equation in jaxpr.eqns:
        inputs = [read(v) for v in equation.invars]
        outputs = _apply(equation, inputs)
        for variable, value in zip(equation.outvars, outputs, strict=True):
            environment[variable] = value
    return [read(v) for v in jaxpr.outvars]


def _apply(equation, inputs: list[Any]) -> Sequence[Any]:
    name, params = equation.primitive.name, equation.params
    if name in _CALLS:
        return _call(name, params, inputs)
    if name in _STRUCTURED:
        out = _STRUCTURED[name](equation, inputs)
        return out if equation.primitive.multiple_results else [out]
    if not any(_is_symbolic(value) for value in inputs) and _all_discrete(equation):
        out = bind(equation, inputs)
        return [np.asarray(o) for o in out] if equation.primitive.multiple_results else [np.asarray(out)]
    if name in _MOVES:
        out = _move(equation, inputs)
        return out if equation.primitive.multiple_results else [out[0]]
    if name in _ELEMENTWISE:
        return [_elementwise(_ELEMENTWISE[name], [_symbolic(v) for v in inputs])]
    raise Untranslatable(name)


def _all_discrete(equation) -> bool:
    return all(np.dtype(v.aval.dtype).kind in "iub" for v in equation.outvars)


# Elementwise primitives -------------------------------------------------------------------------------------------


def _elementwise(operation: Callable, inputs: list[np.ndarray]) -> np.ndarray:
    arrays = np.broadcast_arrays(*inputs)
    values = [operation(*items) for items in zip(*(a.ravel() for a in arrays), strict=True)]
    return _objects(values).reshape(arrays[0].shape)


def _bool(value: Any) -> Any:
    """A Python truth value where it is decided, else the relation."""
    return value if isinstance(value, sp.Basic) else sp.true if value else sp.false


_ELEMENTWISE: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "pow": lambda a, b: a**b,
    "square": lambda a: a**2,
    "sqrt": sp.sqrt,
    "rsqrt": lambda a: 1 / sp.sqrt(a),
    "cbrt": lambda a: sp.sign(a) * sp.Abs(a) ** sp.Rational(1, 3),
    "exp": sp.exp,
    "exp2": lambda a: sp.Integer(2) ** a,
    "log": sp.log,
    "log1p": lambda a: sp.log(1 + a),
    "expm1": lambda a: sp.exp(a) - 1,
    "tanh": sp.tanh,
    "logistic": lambda a: 1 / (1 + sp.exp(-a)),
    "sin": sp.sin,
    "cos": sp.cos,
    "tan": sp.tan,
    "asin": sp.asin,
    "acos": sp.acos,
    "atan": sp.atan,
    "atan2": sp.atan2,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "asinh": sp.asinh,
    "acosh": sp.acosh,
    "atanh": sp.atanh,
    "erf": sp.erf,
    "erfc": sp.erfc,
    "lgamma": sp.loggamma,
    "digamma": sp.digamma,
    "abs": sp.Abs,
    "sign": sp.sign,
    "max": sp.Max,
    "min": sp.Min,
    "lt": lambda a, b: _bool(a < b),
    "le": lambda a, b: _bool(a <= b),
    "gt": lambda a, b: _bool(a > b),
    "ge": lambda a, b: _bool(a >= b),
    "eq": lambda a, b: sp.Eq(a, b),
    "ne": lambda a, b: sp.Ne(a, b),
    "and": lambda a, b: sp.And(_truth(a), _truth(b)),
    "or": lambda a, b: sp.Or(_truth(a), _truth(b)),
    "not": lambda a: sp.Not(_truth(a)),
    "clamp": lambda low, a, high: sp.Min(sp.Max(a, low), high),
    "is_finite": lambda a: sp.false if a.has(sp.oo, -sp.oo, sp.zoo, sp.nan) else sp.true,
    "stop_gradient": lambda a: a,
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "reduce_precision": lambda a: a,
}


# The common ones on integers and booleans, which would otherwise be compiled one by one.


def _truth(value: Any) -> Any:
    """Booleans that went through `_symbolic` are integers; make them truth values again."""
    return sp.true if value == 1 else sp.false if value == 0 else value


# Primitives that only move elements -------------------------------------------------------------------------------

# name -> number of leading operands that carry data; the others are indices.
_MOVES: dict[str, int] = {"dynamic_slice": 1, "gather": 1, "pad": 2, "dynamic_update_slice": 2}


def _move(equation, inputs) -> list[np.ndarray]:
    """Run the primitive on the positions of the elements: where they end up is what it does."""
    count = _MOVES[equation.primitive.name]
    return _moved(lambda *operands: bind(equation, operands), inputs[:count], inputs[count:], equation)


def _moved(run: Callable, data, rest, equation) -> list[np.ndarray]:
    arrays = [_symbolic(value) for value in data]
    pool = _objects([item for array in arrays for item in array.ravel()])
    positions, start = [], 0
    for array in arrays:
        positions.append(np.arange(start, start + array.size).reshape(array.shape))
        start += array.size
    indices = [_concrete(value, equation.primitive.name) for value in rest]
    out = run(*positions, *indices)
    outputs = []
    for moved in out if equation.primitive.multiple_results else [out]:
        where = np.asarray(moved)
        if where.size and (where.min() < 0 or where.max() >= len(pool)):
            raise Untranslatable(f"{equation.primitive.name}: an index out of bounds")
        outputs.append(_objects([pool[i] for i in where.ravel()]).reshape(where.shape))
    return outputs


def _broadcast(equation, inputs):
    value, shape = np.asarray(inputs[0]), equation.params["shape"]
    places = equation.params["broadcast_dimensions"]
    inner = [1] * len(shape)
    for place, size in zip(places, value.shape, strict=True):
        inner[place] = size
    return np.broadcast_to(value.reshape(inner), shape)


def _transpose(equation, inputs):
    return np.asarray(inputs[0]).transpose(equation.params["permutation"])


def _slice(equation, inputs):
    starts, stops = equation.params["start_indices"], equation.params["limit_indices"]
    strides = equation.params["strides"] or (1,) * len(starts)
    return np.asarray(inputs[0])[tuple(slice(*s) for s in zip(starts, stops, strides, strict=True))]


def _split(equation, inputs):
    return np.split(np.asarray(inputs[0]), np.cumsum(equation.params["sizes"])[:-1], equation.params["axis"])


def _concatenate(equation, inputs):
    if any(_is_symbolic(value) for value in inputs):
        inputs = [_symbolic(value) for value in inputs]
    return np.concatenate(inputs, axis=equation.params["dimension"])


def _stack(equation, inputs):
    if any(_is_symbolic(value) for value in inputs):
        inputs = [_symbolic(value) for value in inputs]
    return np.stack(inputs, axis=equation.params.get("axis", equation.params.get("dimension", 0)))


def _rev(equation, inputs):
    return np.flip(np.asarray(inputs[0]), equation.params["dimensions"])


def _reshape(equation, inputs):
    return np.asarray(inputs[0]).reshape(equation.outvars[0].aval.shape)


# Primitives with a structure of their own --------------------------------------------------------------------------


def _convert(equation, inputs):
    kind = np.dtype(equation.params["new_dtype"]).kind
    value = np.asarray(inputs[0])
    if kind == "f":
        if value.dtype == object:
            return _elementwise(lambda v: sp.Piecewise((1, v), (0, True)) if _is_relation(v) else v, [value])
        return _symbolic(value)
    if value.dtype != object:
        return value.astype(equation.params["new_dtype"])
    if kind == "b":
        return _elementwise(lambda v: v if _is_relation(v) else sp.Ne(v, 0), [value])
    if all(getattr(v, "is_Rational", False) for v in value.ravel()):
        return np.array([int(v) for v in value.ravel()]).reshape(value.shape).astype(equation.params["new_dtype"])
    raise Untranslatable("convert_element_type: to an integer")


def _is_relation(value: Any) -> bool:
    return isinstance(value, bool | sp.logic.boolalg.Boolean) and not isinstance(value, sp.Symbol)


def _integer_pow(equation, inputs):
    return _elementwise(lambda a: a ** int(equation.params["y"]), [_symbolic(inputs[0])])


def _select(equation, inputs):
    del equation
    which, *cases = inputs
    if all(not _is_symbolic(case) for case in cases):
        cases = [np.asarray(case) for case in cases]
    else:
        cases = [_symbolic(case) for case in cases]
    which = np.broadcast_to(np.asarray(which), cases[0].shape)
    out = []
    for index, *values in zip(which.ravel(), *(case.ravel() for case in cases), strict=True):
        if which.dtype == object and index not in (sp.true, sp.false):
            out.append(sp.Piecewise((_sympify(values[1]), index), (_sympify(values[0]), True)))
        else:
            out.append(values[int(bool(index))] if len(values) == 2 else values[int(index)])
    if cases[0].dtype == object or any(isinstance(v, sp.Basic) for v in out):
        return _objects([_sympify(v) for v in out]).reshape(cases[0].shape)
    return np.array(out, cases[0].dtype).reshape(cases[0].shape)


def _sympify(value: Any) -> Any:
    return value if isinstance(value, sp.Basic) else sp.sympify(value.item() if hasattr(value, "item") else value)


def _dot_general(equation, inputs):
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    a, b = map(_symbolic, inputs)
    free_a = [i for i in range(a.ndim) if i not in (*left, *left_batch)]
    free_b = [i for i in range(b.ndim) if i not in (*right, *right_batch)]
    batch = tuple(a.shape[i] for i in left_batch)
    size, inner = int(np.prod(batch, dtype=int)), int(np.prod([a.shape[i] for i in left], dtype=int))
    a_shape, b_shape = tuple(a.shape[i] for i in free_a), tuple(b.shape[i] for i in free_b)
    x = a.transpose([*left_batch, *free_a, *left]).reshape(size, -1, inner)
    y = b.transpose([*right_batch, *free_b, *right]).reshape(size, -1, inner)
    out = np.empty((size, x.shape[1], y.shape[1]), object)
    for k, i, j in np.ndindex(*out.shape):
        out[k, i, j] = sp.Add(*(p * q for p, q in zip(x[k, i], y[k, j], strict=True)))
    return out.reshape((*batch, *a_shape, *b_shape))


def _reduce(operation: Callable):
    def run(equation, inputs):
        value, axes = _symbolic(inputs[0]), equation.params["axes"]
        kept = [i for i in range(value.ndim) if i not in axes]
        shape = tuple(value.shape[i] for i in kept)
        rows = value.transpose([*kept, *axes]).reshape(int(np.prod(shape, dtype=int)), -1)
        return _objects([operation(*row) for row in rows]).reshape(shape)

    def discrete_or_run(equation, inputs):
        if not _is_symbolic(inputs[0]):
            return np.asarray(bind(equation, inputs))
        return run(equation, inputs)

    return discrete_or_run


def _cumulative(operation: Callable):
    def run(equation, inputs):
        value, axis = _symbolic(inputs[0]), equation.params["axis"]
        if equation.params["reverse"]:
            value = np.flip(value, axis)
        moved = np.moveaxis(value, axis, 0).copy()
        for i in range(1, len(moved)):
            moved[i] = operation(moved[i - 1], moved[i])
        out = np.moveaxis(moved, 0, axis)
        return np.flip(out, axis) if equation.params["reverse"] else out

    return run


def _scatter(equation, inputs):
    operand, indices, updates = inputs

    def run(x, u, i):
        return bind(equation, [x, i, u])

    return _moved(run, [operand, updates], [indices], equation)[0]


def _scatter_add(equation, inputs):
    operand, indices, updates = _symbolic(inputs[0]).copy(), _concrete(inputs[1], "scatter-add"), _symbolic(inputs[2])
    flat = operand.reshape(-1)
    zero = np.zeros(operand.shape)
    # The update is linear: an update of one at each place in turn shows what it is added to.
    for k, item in enumerate(updates.ravel()):
        one = np.zeros(updates.size)
        one[k] = 1.0
        hit = np.asarray(bind(equation, [zero, indices, one.reshape(updates.shape)])).ravel()
        for place in np.flatnonzero(hit):
            flat[place] = flat[place] + item
    return flat.reshape(operand.shape)


def _iota(equation, inputs):
    del inputs
    shape, axis = equation.params["shape"], equation.params["dimension"]
    line = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    value = np.broadcast_to(line, shape).astype(equation.params["dtype"])
    return _symbolic(value) if value.dtype.kind == "f" else value


_STRUCTURED: dict[str, Callable] = {
    "convert_element_type": _convert,
    "integer_pow": _integer_pow,
    "select_n": _select,
    "dot_general": _dot_general,
    "reduce_sum": _reduce(sp.Add),
    "reduce_prod": _reduce(sp.Mul),
    "reduce_max": _reduce(sp.Max),
    "reduce_min": _reduce(sp.Min),
    "reduce_and": _reduce(sp.And),
    "reduce_or": _reduce(sp.Or),
    "cumsum": _cumulative(lambda a, b: a + b),
    "cumprod": _cumulative(lambda a, b: a * b),
    "scatter": _scatter,
    "scatter-add": _scatter_add,
    "scatter_add": _scatter_add,
    "iota": _iota,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "split": _split,
    "concatenate": _concatenate,
    "stack": _stack,
    "rev": _rev,
    "tile": lambda equation, inputs: np.tile(np.asarray(inputs[0]), equation.params["reps"]),
}


# Calls --------------------------------------------------------------------------------------------------------------

_CALLS = CALLS | {"custom_lin", "scan", "cond"}


def _call(name: str, params, inputs) -> list[Any]:
    if name == "scan":
        return _scan(params, inputs)
    if name == "cond":
        index = int(_concrete(inputs[0], "cond"))
        branch = params["branches"][index]
        return _evaluate(branch.jaxpr, branch.consts, inputs[1:])
    if (inner := called(params)) is None:
        raise Untranslatable(name)
    return _evaluate(*inner, inputs)


def _scan(params, inputs) -> list[Any]:
    body, length = params["jaxpr"], params["length"]
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    consts, carry, xs = inputs[:n_consts], inputs[n_consts : n_consts + n_carry], inputs[n_consts + n_carry :]
    columns: list[list[Any]] = [[] for _ in range(len(body.jaxpr.outvars) - n_carry)]
    for i in range(length - 1, -1, -1) if params["reverse"] else range(length):
        out = _evaluate(body.jaxpr, body.consts, [*consts, *carry, *(np.asarray(x)[i] for x in xs)])
        carry = out[:n_carry]
        for column, value in zip(columns, out[n_carry:], strict=True):
            column.append(np.asarray(value))
    if params["reverse"]:
        columns = [column[::-1] for column in columns]
    if columns and not length:
        raise Untranslatable("scan of length zero")
    return [*carry, *(np.stack(column) for column in columns)]


# Deciding that an expression is zero --------------------------------------------------------------------------------


def vanishes(expression: sp.Expr) -> bool:
    """True if SymPy proves that the expression is zero; False means undecided.

    The expression is brought over a common denominator; roots and trigonometric functions become symbols, and the
    numerator is reduced modulo their defining polynomials (s^q = b, sin^2 + cos^2 = 1).
    """
    expression = sp.sympify(expression)
    if expression.is_zero:
        return True
    expanded = sp.expand(expression)
    if expanded.is_zero:
        return True
    if expanded.has(sp.Piecewise, sp.Max, sp.Min, sp.Heaviside):
        return False
    numerator = _reduced_numerator(expanded)
    return bool(numerator.is_zero)


def _reduced_numerator(expression: sp.Expr) -> sp.Expr:
    expression = expression.rewrite([sp.tanh, sp.sinh, sp.cosh], sp.exp)
    expression = sp.expand(sp.expand_trig(expression), power_exp=True)
    rational = _Rational(expression)
    walked = sp.sympify(rational.walk(expression))
    numerator = sp.expand(sp.fraction(sp.together(walked))[0])
    # Later symbols may sit above earlier ones (nested roots), so reduce from the last to the first, twice.
    for _ in range(2):
        for symbol, relation in reversed(rational.relations):
            numerator = _remainder(numerator, relation, symbol)
    return numerator


class _Rational:
    """Rewriting an expression as a rational function of symbols, with the polynomial relations between them.

    exp(p/q a) = s^p with s = exp(a / q), and b^(p/q) = s^p with s^q = b: one q for each a and each b.
    """

    def __init__(self, expression: sp.Expr):
        self.relations: list[tuple[sp.Symbol, sp.Expr]] = []
        self._symbols: dict[Any, sp.Symbol] = {}
        self._common: dict[Any, int] = {}
        for node in expression.atoms(sp.exp):
            coefficient, rest = node.args[0].as_coeff_Mul()
            self._common["exp", rest] = sp.ilcm(self._common.get(("exp", rest), 1), coefficient.q)
        for node in expression.atoms(sp.Pow):
            if node.exp.is_Rational:
                self._common["root", node.base] = sp.ilcm(self._common.get(("root", node.base), 1), node.exp.q)

    def _fresh(self, key: Any) -> tuple[sp.Symbol, bool]:
        new = key not in self._symbols
        if new:
            self._symbols[key] = sp.Symbol(f"_s{len(self._symbols)}")
        return self._symbols[key], new

    def walk(self, node: sp.Basic) -> sp.Basic:
        """The expression in symbols."""
        if not node.args:
            return node
        if isinstance(node, sp.exp):
            coefficient, rest = node.args[0].as_coeff_Mul()
            return self._fresh(("exp", rest))[0] ** int(coefficient * self._common["exp", rest])
        if isinstance(node, sp.sin | sp.cos):
            return self._circular(node)
        if isinstance(node, sp.Pow) and node.exp.is_Rational and not node.exp.is_Integer:
            return self._root(node)
        if isinstance(node, sp.Abs | sp.sign):
            return self._absolute(node)
        if isinstance(node, sp.Add | sp.Mul) or (isinstance(node, sp.Pow) and node.exp.is_Integer):
            return node.func(*(self.walk(arg) for arg in node.args))
        return self._fresh(node)[0]

    def _circular(self, node: Any) -> sp.Symbol:
        sine, new = self._fresh(("sin", node.args[0]))
        cosine, _ = self._fresh(("cos", node.args[0]))
        if new:
            self.relations.append((sine, sine**2 + cosine**2 - 1))
        return sine if isinstance(node, sp.sin) else cosine

    def _root(self, node: Any) -> sp.Expr:
        order = self._common["root", node.base]
        root, new = self._fresh(("root", node.base))
        if new:
            top, bottom = sp.together(self.walk(node.base)).as_numer_denom()
            self.relations.append((root, sp.expand(bottom * root**order - top)))
        return root ** int(node.exp * order)

    def _absolute(self, node: Any) -> sp.Expr:
        """|a| as a symbol s with s^2 = a^2, and sign(a) as s / a."""
        inner = self.walk(node.args[0])
        symbol, _ = self._fresh(("abs", inner))
        if not any(s == symbol for s, _ in self.relations):
            self.relations.append((symbol, symbol**2 - inner**2))
        return symbol if isinstance(node, sp.Abs) else symbol / inner


def _remainder(numerator: sp.Expr, relation: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """The numerator modulo a polynomial relation; pseudo-division keeps it free of fractions (zero iff zero)."""
    if not numerator.has(symbol):
        return numerator
    numerator = sp.expand(sp.fraction(sp.together(numerator))[0])
    return sp.expand(sp.prem(numerator, relation, symbol))


def almost_everywhere(expression: sp.Expr) -> sp.Expr:
    """Drop what lives on a null set: the derivative of a sign or of a maximum has no mass elsewhere."""
    out = expression.replace(sp.DiracDelta, lambda *_: sp.Integer(0))
    return out.replace(sp.Heaviside, lambda x, *_: sp.Piecewise((1, x > 0), (0, True)))


@functools.lru_cache(maxsize=32)
def coordinate_symbols(names: tuple[str, ...], positive: tuple[bool, ...]) -> tuple[sp.Symbol, ...]:
    """Real (or positive) symbols with the names of the coordinates."""
    return tuple(
        sp.Symbol(name, positive=True) if p else sp.Symbol(name, real=True)
        for name, p in zip(names, positive, strict=True)
    )
