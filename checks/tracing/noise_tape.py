"""The noise tape: feed chosen values into the random draws of a step that knows nothing of it.

The jaxpr of any JAX function (ours or another library's, under jit, scan or vmap) is interpreted; the inner calls that
`jax.random` makes for its normal, uniform and integer draws are intercepted by name and take their values from the
tape. Patching `jax.random.normal` would not do: libraries import the name, and compiled code ignores the patch. A
random primitive that is not intercepted is listed in `Program.unintercepted`; what rests on such a program is
inconclusive. Misuse of keys is invisible here (the contract tier looks for it).
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core

DrawKind = Literal["normal", "uniform", "integer"]

# The names that jax.random gives to the inner jitted calls;
# tests/checks/tracing/test_noise_tape.py guards them on every supported jax.
INTERCEPTED: dict[str, DrawKind] = {"_normal": "normal", "_uniform": "uniform", "_randint": "integer"}

# Primitives that consume random bits. Splitting, folding and wrapping of keys consumes none.
RANDOM_PRIMITIVES = frozenset({"random_bits", "random_gamma", "threefry2x32", "rng_bit_generator", "rng_uniform"})


@dataclass(frozen=True)
class Draw:
    """One intercepted call.

    Attributes:
        kind: normal (standard), uniform (on [0, 1), then mapped to the bounds) or integer (index into the range).
        shape: its shape.
        range: for integers, the number of values that each entry can take.
    """

    kind: DrawKind
    shape: tuple[int, ...]
    range: int = 0

    @property
    def size(self) -> int:
        """Number of draws."""
        return math.prod(self.shape)


class Noise(NamedTuple):
    """Values for all draws of a program, flat and in the order of the calls.

    Attributes:
        normal: (number of normals,), standard normal values.
        uniform: (number of uniforms,), in [0, 1).
        integer: (number of integers,), each in 0 .. range - 1.
    """

    normal: Any
    uniform: Any
    integer: Any


@dataclass(frozen=True, eq=False)
class Program:
    """A function of its arguments and of its noise.

    Attributes:
        draws: the intercepted draws, in order.
        unintercepted: names of random primitives that the tape could not replace.
    """

    draws: tuple[Draw, ...]
    unintercepted: tuple[str, ...]
    _jaxpr: Any
    _structure: Any

    def count(self, kind: DrawKind) -> int:
        """Number of draws of one kind that the tape feeds."""
        return sum(draw.size for draw in self.draws if draw.kind == kind)

    @property
    def ranges(self) -> tuple[int, ...]:
        """The number of values of each integer on the tape."""
        return tuple(draw.range for draw in self.draws if draw.kind == "integer" for _ in range(draw.size))

    def __call__(self, noise: Noise, *args):
        """The function at `args` with its draws replaced by `noise`; traceable by jit, vmap and grad."""
        player = _Player(noise)
        flat = _evaluate(self._jaxpr.jaxpr, self._jaxpr.consts, jax.tree.leaves(args), player)
        return jax.tree.unflatten(self._structure, flat)


def record(function: Callable, *args) -> Program:
    """Trace `function` at example arguments and list its draws.

    The bounds of integer draws must not depend on the arguments.
    """
    jaxpr, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    recorder = _Recorder()
    # Evaluated abstractly: nothing is computed but the bounds of integer draws.
    jax.eval_shape(lambda *flat: _evaluate(jaxpr.jaxpr, jaxpr.consts, flat, recorder), *jax.tree.leaves(args))
    structure = jax.tree.structure(shape)
    return Program(tuple(recorder.draws), tuple(sorted(set(recorder.unintercepted))), jaxpr, structure)


class _Recorder:
    """Evaluates draws as they are and notes them."""

    abstract = True

    def __init__(self):
        self.draws: list[Draw] = []
        self.unintercepted: list[str] = []

    def draw(self, kind: DrawKind, equation, inputs) -> Sequence[Any]:
        aval = equation.outvars[0].aval
        if not jnp.issubdtype(aval.dtype, jnp.floating if kind != "integer" else jnp.integer):
            raise NotImplementedError(f"{kind} draws of type {aval.dtype}")
        shape = tuple(aval.shape)
        number = 0
        if kind == "integer":
            if any(isinstance(bound, jax.core.Tracer) for bound in inputs[1:3]):
                raise NotImplementedError("integer draws with bounds that depend on the state")
            span = np.asarray(inputs[2]) - np.asarray(inputs[1])
            if not np.all(span == span.flat[0]):
                raise NotImplementedError("integer draws with bounds that differ between entries")
            number = int(span.flat[0])
        self.draws.append(Draw(kind, shape, number))
        return core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)

    def unknown(self, primitive: str) -> None:
        self.unintercepted.append(primitive)


class _Player:
    """Replaces draws by the values on the tape."""

    abstract = False

    def __init__(self, noise: Noise):
        self.noise = noise
        self.used = {"normal": 0, "uniform": 0, "integer": 0}

    def draw(self, kind: DrawKind, equation, inputs) -> Sequence[Any]:
        aval = equation.outvars[0].aval
        size = math.prod(aval.shape)
        start = self.used[kind]
        self.used[kind] += size
        values = jnp.asarray(getattr(self.noise, kind))[start : start + size].reshape(aval.shape).astype(aval.dtype)
        if kind == "uniform":
            values = inputs[1] + values * (inputs[2] - inputs[1])
        elif kind == "integer":
            values = inputs[1] + values
        return [values.astype(aval.dtype)]

    def unknown(self, primitive: str) -> None:
        del primitive  # noted when the program was recorded


def _evaluate(jaxpr, consts, args, tape) -> list[Any]:
    """Interpret a jaxpr, handing its draws to `tape`."""
    environment: dict[Any, Any] = {}

    def read(variable):
        return variable.val if isinstance(variable, core.Literal) else environment[variable]

    for variable, value in zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True):
        environment[variable] = value
    for equation in jaxpr.eqns:
        inputs = [read(v) for v in equation.invars]
        for variable, value in zip(equation.outvars, _apply(equation, inputs, tape), strict=True):
            environment[variable] = value
    return [read(v) for v in jaxpr.outvars]


def _apply(equation, inputs, tape) -> Sequence[Any]:
    name = equation.primitive.name
    if name in ("jit", "pjit"):
        kind = INTERCEPTED.get(equation.params["name"])
        if kind is not None:
            return tape.draw(kind, equation, inputs)
        inner = equation.params["jaxpr"]
        if _is_random(inner.jaxpr):
            return _evaluate(inner.jaxpr, inner.consts, inputs, tape)
    elif name == "scan" and _is_random(equation.params["jaxpr"].jaxpr):
        return _unrolled(equation.params, inputs, tape)
    elif name in ("custom_jvp_call", "custom_vjp_call", "closed_call", "checkpoint", "remat", "remat2"):
        inner = equation.params.get("call_jaxpr") or equation.params.get("jaxpr")
        if inner is not None:
            jaxpr, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "jaxpr") else (inner, ())
            if _is_random(jaxpr):
                return _evaluate(jaxpr, consts, inputs, tape)
    elif name in RANDOM_PRIMITIVES:
        tape.unknown(name)
    elif any(_is_random(sub) for sub in _subjaxprs(equation.params)):
        tape.unknown(name)  # draws inside a while or cond: the number of draws is not fixed
    bound = equation.primitive.get_bind_params(equation.params)
    # jax 0.9 returns (subfunctions, parameters), jax 0.10 the parameters alone.
    subfunctions, parameters = bound if isinstance(bound, tuple) else ((), bound)
    constant = not any(isinstance(v, jax.core.Tracer) or _is_key(v) for v in inputs)
    with jax.ensure_compile_time_eval() if constant and tape.abstract else contextlib.nullcontext():
        out = equation.primitive.bind(*subfunctions, *inputs, **parameters)
    return out if equation.primitive.multiple_results else [out]


def _unrolled(params, inputs, tape) -> list[Any]:
    """A scan whose body draws, one iteration after the other."""
    body, length = params["jaxpr"], params["length"]
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    consts, carry, xs = inputs[:n_consts], inputs[n_consts : n_consts + n_carry], inputs[n_consts + n_carry :]
    order = range(length - 1, -1, -1) if params["reverse"] else range(length)
    outputs: list[Any] = [None] * length
    for i in order:
        results = _evaluate(body.jaxpr, body.consts, [*consts, *carry, *(x[i] for x in xs)], tape)
        carry, outputs[i] = results[:n_carry], results[n_carry:]
    stacked = [jnp.stack(column) for column in zip(*outputs, strict=True)] if length else []
    return [*carry, *stacked]


def _is_key(value) -> bool:
    return jnp.issubdtype(jax.typeof(value).dtype, jax.dtypes.prng_key)


def _subjaxprs(params):
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, core.ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, core.Jaxpr):
                yield item


def _is_random(jaxpr) -> bool:
    """True if anything in the jaxpr consumes random bits."""
    return any(
        equation.primitive.name in RANDOM_PRIMITIVES or any(_is_random(sub) for sub in _subjaxprs(equation.params))
        for equation in jaxpr.eqns
    )
