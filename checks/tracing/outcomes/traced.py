"""The exact law of a step that takes finitely many ways: each way that its draws can fall, with its probability.

A uniform is left open until the program compares it with a number: the comparison has two outcomes, each of which
narrows the interval in which the uniform lies. Numbers on the way between are monotone functions of it (a + b u, log u,
exp u). The largest of several log p_k + G_k, with Gumbel variables G_k, is the k-th with the probability p_k / sum p:
`jax.random.categorical` is one draw. Integers are drawn as such. What draws something else, or asks an open draw for
its value, is out of reach.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.tracing.noise_tape import DrawKind, Reader, evaluate, record, require_fed

REARRANGE = frozenset(
    {"reshape", "broadcast_in_dim", "squeeze", "slice", "dynamic_slice", "gather", "transpose", "rev", "copy"}
)
"""Primitives that put the entries of an array elsewhere."""
COMPARE = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "lt_to": "gt", "le_to": "ge"}
"""Comparison -> the one of the operands in the other order."""
FUNCTIONS = frozenset({"log", "exp", "log1p", "expm1"})
"""Increasing functions whose inverses are known."""
SMALL = 1e-30
"""A lower bound of a uniform below which it is 0."""


class Move(NamedTuple):
    """One of `FUNCTIONS`, `neg`, or `add`, `mul`, `max`, `min` with an array of the shape of the draw."""

    name: str
    value: Any = None


@dataclass(frozen=True, eq=False)
class Open:
    """Monotone functions of uniforms that nothing has decided yet.

    Attributes:
        numbers: of the uniforms among those of the step, of the shape of the value.
        moves: from the uniforms to the value, in order.
    """

    numbers: Any
    moves: tuple[Move, ...] = ()

    def rearranged(self, function: Callable[[Any], Any]) -> "Open":
        """The entries elsewhere."""
        moves = tuple(m if m.value is None else Move(m.name, function(m.value)) for m in self.moves)
        return Open(function(self.numbers), moves)

    def broadcast(self, shape: tuple[int, ...]) -> "Open":
        """The entries repeated: an operand may be a scalar."""
        return self if np.shape(self.numbers) == shape else self.rearranged(lambda a: jnp.broadcast_to(a, shape))

    def __getitem__(self, index: Any) -> "Open":
        """Some of the entries: a loop takes one after the other."""
        return self.rearranged(lambda a: a[index])

    def moved(self, name: str, value: Any = None) -> "Open":
        """One function more."""
        if value is not None:
            value = jnp.broadcast_to(jnp.asarray(value, float), np.shape(self.numbers))
        return Open(self.numbers, (*self.moves, Move(name, value)))


class Outcomes(Reader):
    """A tape that takes the way which its outcomes name, and notes the probability of that way.

    Args:
        uniforms: number of uniforms of the step.
        outcomes: (m,) integers; None while the step is read for the first time.
    """

    abstract, walks = True, True

    def __init__(self, uniforms: int, outcomes: Any = None) -> None:
        self.outcomes, self._drawn = outcomes, 0
        self.low, self.high = jnp.zeros(uniforms), jnp.ones(uniforms)
        self.raced, self.log_mass = jnp.zeros(uniforms, int), jnp.zeros(())
        self.ranges: list[int] = []

    @property
    def probability(self) -> jax.Array:
        """Of the way; NaN if a Gumbel variable was asked twice."""
        width = jnp.maximum(self.high - self.low, 0.0)
        twice = jnp.any((self.raced > 1) | ((self.raced > 0) & (width < 1)))
        return jnp.where(twice, jnp.nan, jnp.prod(width) * jnp.exp(self.log_mass))

    def _take(self, shape: tuple[int, ...], number: int) -> Any:
        """Outcomes of as many draws of `number` values."""
        count, start = int(np.prod(shape, dtype=int)), len(self.ranges)
        self.ranges += [number] * count
        if self.outcomes is None:
            return jnp.zeros(shape, int)
        return self.outcomes[start : start + count].reshape(shape)

    def draw(self, kind: DrawKind, equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        """Uniforms stay open; an integer is an outcome."""
        aval = equation.outvars[0].aval
        if kind == "normal":
            raise OutOfReach("the step draws normal variables")
        bounds = inputs[1:3]
        if any(isinstance(bound, jax.core.Tracer) for bound in bounds):
            raise OutOfReach(f"{kind} draws with bounds that depend on the state")
        low, high = (np.asarray(bound) for bound in bounds)
        if kind == "integer":
            span = high - low
            if not np.all(span == span.flat[0]):
                raise OutOfReach("integer draws with bounds that differ between entries")
            number = int(span.flat[0])
            self.log_mass = self.log_mass - aval.size * np.log(number)
            return [(low + self._take(aval.shape, number)).astype(aval.dtype)]
        low, high = np.minimum(low, high), np.maximum(low, high)  # given by keyword they come in the other order
        numbers = self._drawn + np.arange(aval.size).reshape(aval.shape)
        self._drawn += aval.size
        value = Open(jnp.asarray(numbers))
        if np.any(np.abs(low) > SMALL) or np.any(high != 1):
            value = value.moved("mul", high - low).moved("add", low)
        return [value]

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        """Out of reach."""
        del inputs
        raise OutOfReach(f"the step draws by {primitive}, whose outcomes cannot be listed")

    def resolve(self, equation: Any, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """The value of an equation with open draws: moved, rearranged, compared or raced."""
        if not any(isinstance(value, Open) for value in inputs):
            return None
        name = equation.primitive.name
        same = inputs[0] is inputs[-1]  # a draw is compared with itself to see whether it is a number
        if name in ("eq", "ne") and (same or sum(isinstance(value, Open) for value in inputs) == 1):
            return [np.full(equation.outvars[0].aval.shape, same == (name == "eq"))]  # it meets none but by accident
        if name == "select_n" and not isinstance(inputs[0], jax.core.Tracer) and len(set(np.ravel(inputs[0]))) == 1:
            return [inputs[1 + int(np.ravel(inputs[0])[0])]]
        if sum(isinstance(value, Open) for value in inputs) == 1:
            if name in REARRANGE and isinstance(inputs[0], Open):
                rest, parameters = inputs[1:], equation.primitive.get_bind_params(equation.params)
                parameters = parameters[1] if isinstance(parameters, tuple) else parameters
                return [inputs[0].rearranged(lambda a: equation.primitive.bind(a, *rest, **parameters))]
            if name in COMPARE:
                return [self._compared(name, inputs[0], inputs[1], equation.outvars[0].aval.shape)]
            if name == "argmax" and isinstance(inputs[0], Open):
                return [self._raced(inputs[0], equation)]
            if (value := _moved(name, inputs, equation.outvars[0].aval)) is not None:
                return [value]
        raise OutOfReach(f"the step computes `{name}` of a draw, of which it takes no finite number of values")

    def _compared(self, name: str, left: Any, right: Any, shape: tuple[int, ...]) -> Any:
        """An outcome for each entry of a comparison, which narrows the interval of its uniform."""
        if isinstance(right, Open):
            left, right, name = right, left, COMPARE[name]
        left = left.broadcast(shape)
        bound, below = _threshold(left, right)
        first = self._take(np.shape(left.numbers), 2) == 1  # the uniform is below its bound
        self.high = self.high.at[left.numbers].min(jnp.where(first, bound, jnp.inf))
        self.low = self.low.at[left.numbers].max(jnp.where(first, -jnp.inf, bound))
        smaller = first == below
        return smaller if name.startswith("l") else ~smaller

    def _raced(self, value: Open, equation: Any) -> Any:
        """The index of the largest of log p_k + G_k."""
        (axis,) = equation.params["axes"]
        names, shifts = [move.name for move in value.moves[: len(GUMBEL)]], value.moves[len(GUMBEL) :]
        if names != GUMBEL or any(move.name != "add" for move in shifts):
            raise OutOfReach("the step takes the largest of draws that are no Gumbel variables plus numbers")
        shift = sum((move.value for move in shifts), jnp.zeros(np.shape(value.numbers)))
        logs = jax.nn.log_softmax(shift, axis=axis)
        aval = equation.outvars[0].aval
        chosen = self._take(aval.shape, shift.shape[axis])
        self.log_mass = self.log_mass + jnp.sum(jnp.take_along_axis(logs, jnp.expand_dims(chosen, axis), axis))
        self.raced = self.raced.at[value.numbers].add(1)
        return chosen.astype(aval.dtype)


GUMBEL = ["log", "neg", "log", "neg"]
"""-log(-log u)."""


def _moved(name: str, inputs: Sequence[Any], aval: Any) -> Open | None:
    """A draw after a monotone function; None for any other function."""
    first = isinstance(inputs[0], Open)
    value = inputs[0] if first else inputs[1]
    other = inputs[1] if first and len(inputs) > 1 else inputs[0]
    value = value.broadcast(aval.shape)
    if name in FUNCTIONS:
        return value.moved(name)
    if name in ("convert_element_type", "stop_gradient") and jnp.issubdtype(aval.dtype, jnp.floating):
        return value
    match name, first:
        case "neg", _:
            return value.moved("neg")
        case "add" | "mul" | "max" | "min", _:
            return value.moved(name, other)
        case "sub", True:
            return value.moved("add", -other)
        case "sub", False:
            return value.moved("neg").moved("add", other)
        case "div", True:
            return value.moved("mul", 1.0 / jnp.asarray(other, float))
    return None


INVERSE: dict[str, Callable[[Any], Any]] = {
    "log": jnp.exp,
    "exp": lambda t: jnp.where(t > 0, jnp.log(jnp.maximum(t, 0.0)), -jnp.inf),
    "log1p": jnp.expm1,
    "expm1": lambda t: jnp.where(t > -1, jnp.log1p(jnp.maximum(t, -1.0)), -jnp.inf),
}


def _threshold(value: Open, right: Any) -> tuple[Any, Any]:
    """(b, below): the value is smaller than `right` where its uniform u < b if `below`, where u > b otherwise."""
    t = jnp.broadcast_to(jnp.asarray(right, float), np.shape(value.numbers))
    below = jnp.ones(t.shape, bool)
    for name, number in reversed(value.moves):
        if name == "add":
            t = t - number
        elif name == "neg":
            t, below = -t, ~below
        elif name == "mul":
            t, below = t / jnp.where(number == 0, 0.0, number), below ^ (number < 0)
        elif name == "max":
            t = jnp.where(t > number, t, -jnp.inf)
        elif name == "min":
            t = jnp.where(t > number, jnp.inf, t)
        else:
            t = INVERSE[name](t)
    return jnp.where(jnp.isnan(t), jnp.where(below, -jnp.inf, jnp.inf), t), below


@dataclass(frozen=True, eq=False)
class Listed:
    """A function of finitely many ways.

    Attributes:
        run: (outcomes (m,), *arguments) -> its value on that way, and the probability of the way; traceable.
        ranges: (m,), the number of values of each outcome.
    """

    run: Callable[..., tuple[Any, jax.Array]]
    ranges: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of ways."""
        return int(np.prod([float(n) for n in self.ranges]))

    def ways(self) -> np.ndarray:
        """All outcomes (count, m)."""
        return np.stack(np.unravel_index(np.arange(self.count), self.ranges or (1,)), axis=-1)[:, : len(self.ranges)]


def listed(function: Callable[..., Any], *arguments: Any) -> Listed:
    """The ways that a function of JAX takes.

    Args:
        function: draws from keys of its own; its value is a pytree of arrays.
        arguments: examples.

    Raises:
        OutOfReach: if it draws what has no finite number of outcomes.
    """
    try:
        program = record(function, *arguments)
    except NotImplementedError as error:
        raise OutOfReach(f"the step draws what cannot be listed: {error}") from None
    require_fed(program)
    closed, structure = jax.make_jaxpr(function, return_shape=True)(*arguments)
    uniforms = program.count("uniform")
    ranges: list[int] = []

    def run(outcomes: Any, *values: Any) -> tuple[Any, jax.Array]:
        tape = Outcomes(uniforms, outcomes)
        flat = evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(values), tape)
        ranges[:] = tape.ranges
        if any(isinstance(leaf, Open) for leaf in flat):
            raise OutOfReach("a draw is part of the state as it is")
        return jax.tree.unflatten(jax.tree.structure(structure), flat), tape.probability

    jax.eval_shape(lambda *values: run(None, *values), *arguments)
    return Listed(run, tuple(ranges))
