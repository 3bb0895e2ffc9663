"""A function of JAX, evaluated by NumPy from its jaxpr.

XLA takes 5 to 30 ms to lower and load a program, most of it for the 20 rounds of threefry; NumPy takes 2 us for each of
its operations. So it evaluates what is called once or a few times, and XLA what runs long. Both have the same semantics
up to round-off, and the same random bits. What NumPy has no rule for, or takes long, is compiled.
"""

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs import arrays, elementwise, indexing, keys, matrices
from sgmcmc_verification.checks.programs.operations import CALLS, Unsupported, called, subjaxprs

RULES = {**elementwise.RULES, **arrays.RULES, **indexing.RULES, **matrices.RULES, **keys.RULES}
LOOPS = frozenset({"scan", "while", "cond"})
OPERATIONS = 20_000
"""Operations of a program, with all turns of its loops, from which on it is compiled."""
ELEMENTS = 1 << 17
"""Elements of the largest array, likewise."""
THREEFRY = "key<fry>"


class Evaluated:
    """A function of pytrees with the values of `jax.jit(function)`, for few calls: by NumPy if it can.

    It is traced once for arguments of a kind, unless what is traced was put aside: a function that keeps its arguments,
    or values that follow from them, is called as it is, so that it keeps numbers. What it raises is raised.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._traces: dict[Any, _Trace] = {}
        self._programs: dict[Any, Callable[[Sequence[Any]], Any]] = {}

    def __call__(self, *args: Any) -> Any:
        """The value of the function."""
        kind = _kind(args)
        if kind in self._programs:
            return self._programs[kind](args)
        self._programs[kind], value = self._first(args)
        return value

    def program(self, *args: Any) -> core.ClosedJaxpr:
        """The program from the leaves of arguments of this kind to those of the value."""
        return self._trace(args).closed

    def _trace(self, args: Sequence[Any]) -> "_Trace":
        kind = _kind(args)
        if kind not in self._traces:
            self._traces[kind] = _traced(self._function, args)
        return self._traces[kind]

    def _first(self, args: Sequence[Any]) -> tuple[Callable[[Sequence[Any]], Any], Any]:
        """(Arguments of this kind -> what the function returns, what it returns for these)."""
        closed, structure, kept = self._trace(args)
        if kept:
            return lambda args: self._function(*args), self._function(*args)

        def program(of: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
            return lambda args: jax.tree.unflatten(structure, of(jax.tree.leaves(args)))

        by_numpy = program(lambda leaves: values_of(closed, leaves))
        try:
            return by_numpy, by_numpy(args)
        except Unsupported:
            compiled = jax.jit(core.jaxpr_as_fun(closed))
            by_xla = program(lambda leaves: compiled(*leaves))
            return by_xla, by_xla(args)


class _Trace(NamedTuple):
    """The program of a function, the structure of its value, and whether it put aside what was traced."""

    closed: core.ClosedJaxpr
    structure: Any
    kept: bool


def evaluated(function: Callable[..., Any]) -> Evaluated:
    """`Evaluated` of a function."""
    return Evaluated(function)


def _kind(args: Sequence[Any]) -> Any:
    leaves, structure = jax.tree.flatten(args)
    return structure, tuple(jax.typeof(leaf) for leaf in leaves)


def _traced(function: Callable[..., Any], args: Sequence[Any]) -> _Trace:
    traces: list[Callable[[], Any]] = []

    def watched(*args: Any) -> Any:
        # all values that are traced hold on to it; it is no public name, and without it nothing is known of them
        held = (getattr(value, "_trace", None) for value in jax.tree.leaves(args))
        traces.extend((lambda: True) if trace is None else weakref.ref(trace) for trace in held)
        return function(*args)

    closed, shape = jax.make_jaxpr(watched, return_shape=True)(*args)
    return _Trace(closed, jax.tree.structure(shape), any(trace() is not None for trace in traces))


def values_of(closed: Any, args: Sequence[Any]) -> list[jax.Array]:
    """The outputs of a closed jaxpr, as arrays of JAX.

    Raises:
        Unsupported: by an operation without a rule, keys that are not threefry's, outputs whose types are weak, or a
            program that takes long.
    """
    if not jax.config.values["jax_threefry_partitionable"] or not _supported(closed.jaxpr):
        raise Unsupported("an operation without a rule")
    if not all(map(_can_be_made, (v.aval for v in closed.jaxpr.outvars))):
        raise Unsupported("an output of weak type")
    flat = [inward(a) for a in args]
    with np.errstate(all="ignore"):
        outputs = Evaluation().run(closed.jaxpr, [inward(c) for c in closed.consts], flat)
    return [_outward(x, v.aval) for x, v in zip(outputs, closed.jaxpr.outvars, strict=True)]


def bind(equation: Any, inputs: Sequence[Any]) -> Any:
    """The value of an operation, or several: by NumPy where there is a rule and no input is traced."""
    primitive = equation.primitive
    on_host = not any(isinstance(value, jax.core.Tracer | jax.Array) for value in inputs)
    if primitive.name in RULES and on_host and not any(holds_keys(v.aval) for v in equation.outvars):
        try:
            values = _by_rule(equation, [np.asarray(value) for value in inputs])
            return values if primitive.multiple_results else values[0]
        except Unsupported:
            pass
    bound = primitive.get_bind_params(equation.params)
    # jax 0.9 returns (subfunctions, parameters), jax 0.10 the parameters alone
    subfunctions, parameters = bound if isinstance(bound, tuple) else ((), bound)
    traced = any(isinstance(value, jax.core.Tracer) for value in inputs)
    return primitive.bind(*subfunctions, *(inputs if traced else map(_on_device, inputs)), **parameters)


def _by_rule(equation: Any, given: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        values = list(RULES[equation.primitive.name](given, equation.params))
    # operations that move numbers are asked to move others in their place, as the indices of an array
    if any(value.dtype != v.aval.dtype for value, v in zip(given, equation.invars, strict=True)):
        return values
    return [_typed(value, v.aval) for value, v in zip(values, equation.outvars, strict=True)]


def _on_device(value: Any) -> jax.Array:
    """An array of JAX, without the program that `jnp.asarray` is."""
    return value if isinstance(value, jax.Array) else jax.device_put(np.asarray(value))


@functools.lru_cache(maxsize=512)
def _supported(jaxpr: Any) -> bool:
    """True for a program of which all operations have a rule; JAX shares those of its functions between programs."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name not in RULES and name not in CALLS and name not in LOOPS:
            return False
        if any(_is_foreign(v.aval) or getattr(v.aval, "size", 0) > ELEMENTS for v in equation.outvars):
            return False
        if not all(_supported(inner) for inner in subjaxprs(equation.params)):
            return False
    return not any(_is_foreign(v.aval) for v in (*jaxpr.invars, *jaxpr.constvars))


def _is_foreign(aval: Any) -> bool:
    """True for keys other than threefry's."""
    return holds_keys(aval) and str(aval.dtype) != THREEFRY


def holds_keys(aval: Any) -> bool:
    """True for arrays of keys, typed."""
    return _is_of_keys(aval.dtype)


@functools.lru_cache(maxsize=64)
def _is_of_keys(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jax.dtypes.prng_key))


def inward(value: Any) -> np.ndarray:
    """An array of NumPy; of keys the whole numbers that stand for them."""
    if isinstance(value, jax.Array) and holds_keys(value):
        return keys.of_words(np.asarray(jax.random.key_data(value)))
    return np.asarray(value)


def _outward(value: np.ndarray, aval: Any) -> jax.Array:
    if holds_keys(aval):
        return jax.random.wrap_key_data(jax.device_put(keys.words_of(value)))
    return jax.device_put(value.item() if aval.weak_type else np.array(value, aval.dtype))


def _can_be_made(aval: Any) -> bool:
    """True for all but weak types that no number of Python has: arrays of them, and those that are not the default."""
    weak = getattr(aval, "weak_type", False)
    return not weak or (aval.shape == () and aval.dtype == jnp.result_type(aval.dtype.type(0).item()))


class Evaluation:
    """One evaluation, which counts its operations."""

    def __init__(self) -> None:
        self.operations = 0

    def run(self, jaxpr: Any, consts: Sequence[np.ndarray], args: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of a jaxpr."""
        script = _script(jaxpr)
        self.operations += len(script.lines)
        if self.operations > OPERATIONS:
            raise Unsupported("many operations")
        held = [*consts, *args, *script.literals, *script.blanks]
        for line, inputs, outputs in script.lines:
            values = self.apply(line, [held[place] for place in inputs])
            for (place, dtype, shape), value in zip(outputs, values, strict=True):
                same = type(value) is np.ndarray and value.dtype == dtype
                held[place] = value if same else np.asarray(value, dtype)
                if held[place].shape != shape:
                    raise Unsupported(f"{line.equation.primitive.name}, of the shape {held[place].shape}")
        return [held[place] for place in script.outputs]

    def apply(self, line: "Line", inputs: list[np.ndarray]) -> Sequence[Any]:
        """The outputs of an operation."""
        return line.rule(self, inputs)

    def loop(self, name: str, params: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """The outputs of an operation of `LOOPS`."""
        if name == "scan":
            return self._scan(params, inputs)
        if name == "while":
            return self._while(params, inputs)
        branches = params["branches"]  # an index out of range is moved into it
        return self._closed(branches[min(max(int(inputs[0]), 0), len(branches) - 1)], inputs[1:])

    def _closed(self, program: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.run(program.jaxpr, [inward(c) for c in program.consts], inputs)

    def _scan(self, params: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
        body, length, first = params["jaxpr"], params["length"], params["num_consts"]
        last = first + params["num_carry"]
        consts, carry, sequences = inputs[:first], inputs[first:last], inputs[last:]
        rows: list[list[np.ndarray]] = [[] for _ in range(length)]
        for turn in reversed(range(length)) if params["reverse"] else range(length):
            results = self._closed(body, [*consts, *carry, *(x[turn] for x in sequences)])
            carry, rows[turn] = results[: len(carry)], results[len(carry) :]
        if length:
            return [*carry, *(np.stack(column) for column in zip(*rows, strict=True))]
        outputs = body.jaxpr.outvars[len(carry) :]
        return [*carry, *(np.zeros((0, *v.aval.shape), _dtype(v.aval)) for v in outputs)]

    def _while(self, params: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
        ends = itertools.accumulate([params["cond_nconsts"], params["body_nconsts"]])
        of_test, of_body = (0, next(ends)), (params["cond_nconsts"], next(ends))
        carry = inputs[of_body[1] :]
        while np.any(go_on := self._closed(params["cond_jaxpr"], [*inputs[slice(*of_test)], *carry])[0]):
            after = self._closed(params["body_jaxpr"], [*inputs[slice(*of_body)], *carry])
            # under vmap there is a test for each of a batch, along the first axes of all that is carried
            carry = [np.where(along(go_on, new), new, old) for new, old in zip(after, carry, strict=True)]
        return carry


def along(test: Any, value: Any) -> Any:
    """A test for each of a batch, in the shape in which it selects among values along their first axes."""
    return test.reshape(test.shape + (1,) * (value.ndim - test.ndim))


class Line(NamedTuple):
    """An operation, and what computes its outputs."""

    equation: Any
    rule: Callable[[Evaluation, list[np.ndarray]], Sequence[Any]]


class _Script(NamedTuple):
    """A jaxpr as it is run: values are known by places, those of its constants and arguments first.

    Attributes:
        literals: numbers that are written into it, which follow.
        blanks: nothing, for each value that is computed.
        lines: operations, the places of their inputs, and those of their outputs with their types, None for keys,
            which are whole numbers, and their shapes.
        outputs: places.
    """

    literals: list[np.ndarray]
    blanks: list[Any]
    lines: list[tuple[Line, list[int], list[tuple[int, Any, tuple[int, ...]]]]]
    outputs: list[int]


@functools.lru_cache(maxsize=512)
def _script(jaxpr: Any) -> _Script:
    """The script of a jaxpr, of which JAX shares those of its functions between programs."""
    places = {v: i for i, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    read = (v for equation in jaxpr.eqns for v in equation.invars)
    written = [v for v in (*read, *jaxpr.outvars) if isinstance(v, core.Literal)]
    literals = {id(v): len(places) + i for i, v in enumerate(written)}
    count = len(places) + len(written)
    made = [v for equation in jaxpr.eqns for v in equation.outvars]
    places |= {v: count + i for i, v in enumerate(made)}
    place = lambda v: literals[id(v)] if isinstance(v, core.Literal) else places[v]
    shown = lambda v: (places[v], None if holds_keys(v.aval) else v.aval.dtype, v.aval.shape)
    lines = [
        (Line(each, _rule_of(each)), [place(v) for v in each.invars], [shown(v) for v in each.outvars])
        for each in jaxpr.eqns
    ]
    values = [np.asarray(v.val, _dtype(v.aval)) for v in written]
    for value in values:
        value.setflags(write=False)  # it is the same in every run
    return _Script(values, [None] * len(made), lines, [place(v) for v in jaxpr.outvars])


def _rule_of(equation: Any) -> Callable[[Evaluation, list[np.ndarray]], Sequence[Any]]:
    """The function that computes the outputs of an operation."""
    name, params = equation.primitive.name, equation.params
    if name in CALLS and (inner := called(params)) is not None:
        jaxpr, consts = inner[0], [inward(c) for c in inner[1]]
        return lambda evaluation, inputs: evaluation.run(jaxpr, consts, inputs)
    if name in LOOPS:
        return lambda evaluation, inputs: evaluation.loop(name, params, inputs)
    return lambda evaluation, inputs: RULES[name](inputs, params)


def _dtype(aval: Any) -> Any:
    return np.uint64 if holds_keys(aval) else aval.dtype


def _typed(value: Any, aval: Any) -> np.ndarray:
    """An array of the type that JAX says."""
    return np.asarray(value) if holds_keys(aval) else np.asarray(value, aval.dtype)
