"""The noise tape: feed chosen values into the random draws of a step that knows nothing of it.

The jaxpr of any JAX function (ours or another library's, under jit, scan or vmap) is interpreted; the inner calls that
`jax.random` makes for its normal, uniform and integer draws are intercepted and take their values from the tape. They
are known by name, and by the file of their code: a function of another author under such a name is walked into.
Patching `jax.random.normal` would not do: libraries import the name, and compiled code ignores the patch. A random
primitive that is not intercepted is listed in `Program.unintercepted`; what rests on such a program is inconclusive.
Which keys the draws consume is invisible here (`checks.tracing.key_lineage`).
"""

import contextlib
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core, source_info_util

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.core.error_origin import SUITE
from sgmcmc_verification.checks.programs.decided import decided
from sgmcmc_verification.checks.programs.evaluation import bind
from sgmcmc_verification.checks.programs.operations import CALLS, called, subjaxprs, turn_by_turn

DrawKind = Literal["normal", "uniform", "integer"]

# The names that jax.random gives to the inner jitted calls;
# tests/checks/tracing/test_noise_tape.py guards them on every supported jax.
INTERCEPTED: dict[str, DrawKind] = {
    "_normal": "normal",
    "_normal_real": "normal",  # a complex normal is made of two real ones
    "_uniform": "uniform",
    "_randint": "integer",
}

# Primitives that consume random bits. Splitting, folding and wrapping of keys consumes none.
RANDOM_PRIMITIVES = frozenset({"random_bits", "random_gamma", "threefry2x32", "rng_bit_generator", "rng_uniform"})


UNROLLED = 32
"""Largest number of iterations of a loop without draws that is unrolled to look into it."""


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
        jaxpr: of the function, closed.
    """

    draws: tuple[Draw, ...]
    unintercepted: tuple[str, ...]
    jaxpr: Any
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
        player = Player(noise)
        flat = evaluate(self.jaxpr.jaxpr, self.jaxpr.consts, jax.tree.leaves(args), player)
        return jax.tree.unflatten(self._structure, flat)


class NotFed(OutOfReach):
    """A program with draws that the tape cannot feed."""


def require_fed(program: Any) -> None:
    """Raise NotFed if a random primitive of a program escaped the tape."""
    if program.unintercepted:
        raise NotFed(f"random primitives that the tape cannot feed: {', '.join(program.unintercepted)}")


def record(function: Callable, *args) -> Program:
    """Trace `function` at example arguments and list its draws.

    The bounds of integer draws must not depend on the arguments. Where a whole number of the function itself decides
    whether something is drawn, the draws are those of the branch that it decides for.
    """
    jaxpr, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    jaxpr = decided(jaxpr, _is_random)
    recorder = _Recorder()
    if not _walked(jaxpr.jaxpr, recorder):
        recorder = _recorded(jaxpr, args, _Recorder())
    if recorder.bounds_are_computed:
        recorder = _recorded(jaxpr, args, _Recorder(abstract=True))
    structure = jax.tree.structure(shape)
    return Program(tuple(recorder.draws), tuple(sorted(set(recorder.unintercepted))), jaxpr, structure)


def _walked(jaxpr: Any, recorder: "_Recorder") -> bool:
    """Show a recorder all draws of a program, as `evaluate` would, without its values; False if these are needed."""
    for equation in jaxpr.eqns:
        name, inside = equation.primitive.name, list(subjaxprs(equation.params))
        kind = _intercepted(equation)
        if kind == "integer":  # whose bounds have to be known
            return False
        if kind is not None:
            recorder.note(kind, equation)
        elif name in CALLS or name == "scan":
            turns = equation.params["length"] if name == "scan" else 1
            if any(map(_is_random, inside)) and not all(_walked(each, recorder) for each in inside * turns):
                return False
        elif name in RANDOM_PRIMITIVES or any(map(_is_random, inside)):
            recorder.unknown(name, ())
    return True


def _recorded(jaxpr: Any, args: Sequence[Any], recorder: "_Recorder") -> "_Recorder":
    """A recorder that has seen all draws of a program; at most the bounds of integer draws are computed."""
    jax.eval_shape(lambda *flat: evaluate(jaxpr.jaxpr, jaxpr.consts, flat, recorder), *jax.tree.leaves(args))
    return recorder


class Reader:
    """A tape that looks at draws only."""

    abstract, walks, unrolls, into_branches = False, False, True, False

    def seen(self, equation: Any, inputs: Sequence[Any]) -> None:
        """Take no note of an equation."""
        del equation, inputs

    def within(self, equation: Any) -> contextlib.AbstractContextManager[None]:
        """No context."""
        del equation
        return contextlib.nullcontext()

    def alternatives(self, equation: Any, follow: Callable[[Any], None]) -> None:
        """Follow no branch of a `cond`."""
        del equation, follow

    def resolve(self, equation: Any, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """None: no value is anything but an array."""
        del equation, inputs


class _Recorder(Reader):
    """Evaluates draws as they are and notes them.

    Args:
        abstract: compute what does not depend on the arguments, as bounds of integers may have to be: each operation
            is a program of its own.
    """

    def __init__(self, abstract: bool = False):
        self.abstract = abstract
        self.bounds_are_computed = False
        self.draws: list[Draw] = []
        self.unintercepted: list[str] = []

    def note(self, kind: DrawKind, equation, number: int = 0) -> None:
        """Append a draw of an equation. Raises OutOfReach for numbers of another type."""
        aval = equation.outvars[0].aval
        if not jnp.issubdtype(aval.dtype, jnp.floating if kind != "integer" else jnp.integer):
            raise OutOfReach(f"{kind} draws of type {aval.dtype}")
        self.draws.append(Draw(kind, tuple(aval.shape), number))

    def draw(self, kind: DrawKind, equation, inputs) -> Sequence[Any]:
        self.note(kind, equation, self._number(*inputs[1:3]) if kind == "integer" else 0)
        return core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)

    def _number(self, low: Any, high: Any) -> int:
        """The number of values of an integer draw; 0 where it is still to be computed."""
        if any(isinstance(bound, jax.core.Tracer) for bound in (low, high)):
            if self.abstract:
                raise OutOfReach("integer draws with bounds that depend on the state")
            self.bounds_are_computed = True
            return 0
        span = np.asarray(high) - np.asarray(low)
        if not np.all(span == span.flat[0]):
            raise OutOfReach("integer draws with bounds that differ between entries")
        return int(span.flat[0])

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        del inputs
        self.unintercepted.append(primitive)


class Player(Reader):
    """Replaces draws by the values on the tape."""

    def __init__(self, noise: Noise):
        self.noise = noise
        self.used = {"normal": 0, "uniform": 0, "integer": 0}

    def draw(self, kind: DrawKind, equation, inputs) -> Sequence[Any]:
        """The next values of the tape."""
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

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        """Let it draw: it was noted when the program was recorded."""
        del primitive, inputs


class Tape(Protocol):
    """Treatment of the draws of a program.

    Attributes:
        abstract: compute what does not depend on the arguments, as the bounds of integer draws.
        walks: go into functions and loops that draw nothing too, and see each equation.
        unrolls: write out loops of a fixed number of turns that draw.
        into_branches: see the draws of all branches of a `cond`, whichever is taken.
    """

    abstract: bool
    walks: bool
    unrolls: bool
    into_branches: bool

    def draw(self, kind: DrawKind, equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a call of jax.random; its key is the first of the inputs."""
        ...

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        """Take note of a random primitive outside of such calls, or of control flow that draws."""
        ...

    def seen(self, equation: Any, inputs: Sequence[Any]) -> None:
        """Take note of an equation before it is computed; called if it `walks`."""
        ...

    def within(self, equation: Any) -> contextlib.AbstractContextManager[None]:
        """Context in which the function that a call names is evaluated."""
        ...

    def alternatives(self, equation: Any, follow: Callable[[Any], None]) -> None:
        """Follow each branch of a `cond` that draws, for what is to be seen in it; called if it is `into_branches`."""
        ...

    def resolve(self, equation: Any, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """The outputs of an equation with draws among its inputs that the tape has left open; None for any other."""
        ...


def evaluate(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], tape: Tape) -> list[Any]:
    """Interpret a jaxpr, handing its draws to `tape`."""
    environment: dict[Any, Any] = {}

    def read(variable):
        return variable.val if isinstance(variable, core.Literal) else environment[variable]

    for variable, value in zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True):
        environment[variable] = value
    for equation in jaxpr.eqns:
        inputs = [read(v) for v in equation.invars]
        if tape.walks:
            tape.seen(equation, inputs)
        for variable, value in zip(equation.outvars, _apply(equation, inputs, tape), strict=True):
            environment[variable] = value
    return [read(v) for v in jaxpr.outvars]


def _is_written_out(equation: Any, tape: Tape) -> bool:
    return _is_random(equation.params["jaxpr"].jaxpr) or (tape.walks and _short(equation))


def _apply(equation, inputs, tape) -> Sequence[Any]:
    name = equation.primitive.name
    if name in ("jit", "pjit"):
        if (kind := _intercepted(equation)) is not None:
            return tape.draw(kind, equation, inputs)
        inner = equation.params["jaxpr"]
        if tape.walks or _is_random(inner.jaxpr):
            with tape.within(equation):
                return evaluate(inner.jaxpr, inner.consts, inputs, tape)
    elif name == "scan" and tape.unrolls and _is_written_out(equation, tape):
        return turn_by_turn(equation.params, inputs, lambda body, consts, turn: evaluate(body, consts, turn, tape))
    elif name in CALLS:
        inner = called(equation.params)
        if inner is not None and (tape.walks or _is_random(inner[0])):
            return evaluate(*inner, inputs, tape)
    elif name == "cond" and tape.into_branches:
        tape.alternatives(equation, lambda branch: evaluate(branch.jaxpr, branch.consts, inputs[1:], tape))
    elif name in RANDOM_PRIMITIVES or any(_is_random(sub) for sub in subjaxprs(equation.params)):
        tape.unknown(name, inputs)  # draws inside a while or cond too: their number is not fixed
    if (resolved := tape.resolve(equation, inputs)) is not None:
        return resolved
    constant = not any(isinstance(v, jax.core.Tracer) or is_key(v) for v in inputs)
    with jax.ensure_compile_time_eval() if constant and tape.abstract else contextlib.nullcontext():
        out = bind(equation, inputs)
    return out if equation.primitive.multiple_results else [out]


def _intercepted(equation: Any) -> DrawKind | None:
    """The kind of draw that a call of jax.random makes; None for any other equation."""
    if equation.primitive.name not in ("jit", "pjit"):
        return None
    kind = INTERCEPTED.get(equation.params["name"])
    return kind if kind is not None and _of_jax(equation) and not is_complex(equation) else None


def is_complex(equation: Any) -> bool:
    """True for a call that returns complex numbers."""
    return bool(jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.complexfloating))


def _short(equation: Any) -> bool:
    """True for a loop that can be unrolled to look at what it does."""
    return equation.params["length"] <= UNROLLED


JAX_RANDOM = str(Path(inspect.getsourcefile(jax.random.normal) or "").resolve())
"""File of the functions that are intercepted."""


def source_place(equation: Any) -> tuple[Path, int] | None:
    """File and line that an equation comes from, of the innermost author that is not JAX; None if that is unknown."""
    file, _, rest = source_info_util.summarize(equation.source_info).partition(":")
    line = rest.partition(":")[0].partition(" ")[0]
    return (Path(file).resolve(), int(line)) if line.isdigit() else None


def short_place(place: tuple[Path, int] | None) -> str:
    """`my_sampler.py:12`, or the path within the suite."""
    if place is None:
        return ""
    path, line = place
    return f"{path.relative_to(SUITE) if path.is_relative_to(SUITE) else path.name}:{line}"


def file_of(equation: Any) -> Path:
    """File of the function that is called."""
    info = equation.params["jaxpr"].jaxpr.debug_info
    return Path((info.func_filename or "") if info is not None else "").resolve()


def _of_jax(equation: Any) -> bool:
    """True if the function that was called is one of jax.random, and not of another author under such a name."""
    return str(file_of(equation)) == JAX_RANDOM


def is_key(value: Any) -> bool:
    """True for typed keys."""
    return jnp.issubdtype(jax.typeof(value).dtype, jax.dtypes.prng_key)


def _is_random(jaxpr) -> bool:
    """True if anything in the jaxpr consumes random bits."""
    return any(
        equation.primitive.name in RANDOM_PRIMITIVES or any(_is_random(sub) for sub in subjaxprs(equation.params))
        for equation in jaxpr.eqns
    )
