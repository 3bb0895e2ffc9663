"""The interpreter: a jaxpr evaluated over arrays of series, each primitive by the handler of its name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs.evaluation import bind
from sgmcmc_verification.checks.programs.operations import CALLS
from sgmcmc_verification.checks.proof.draws import History
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import is_positive
from sgmcmc_verification.checks.proof.laws import Law
from sgmcmc_verification.checks.proof.potential import Memory
from sgmcmc_verification.checks.proof.reader.choices import choices_first, needed, producers
from sgmcmc_verification.checks.proof.reader.paths import Path
from sgmcmc_verification.checks.proof.reader.values import (
    UNKNOWN,
    Array,
    Equation,
    Predicate,
    Unknown,
    has_unknown,
    is_discrete,
    is_key_type,
    is_symbolic,
    meant,
    objects,
)
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Series, Space
from sgmcmc_verification.checks.tracing.noise_tape import short_place, source_place

Handler = Callable[["Reader", Equation, list[Any]], Sequence[Any]]
"""(reader, equation, inputs) -> outputs."""


class Drawn(NamedTuple):
    """The use that was made of a key."""

    law: Law | str
    shape: tuple[int, ...]


class Reader:
    """The state of one reading of a program.

    Args:
        space: of the series.
        handlers: primitive -> how it is read.
        path: through the branches.
        finite: the step size is a generator of the ring and no limit h -> 0 is taken; then a comparison of a draw with
            the state is an acceptance, and not unreadable.
        given: key -> the values that take the place of its draws.
        points: points at which functions were met at finite h, to know them again in another form.
        decide: the truth of a predicate on the path.

    Attributes:
        notes: what a verdict has to be weighed with, such as a key that is used twice.
        limits: comparisons of the step size with numbers, which were decided for small h.
        drawn: what each key was used for.
        reads_counters: whether an integer of the state may enter the arithmetic, as a number of which nothing is known.
        small_steps: whether comparisons of the step size with numbers are decided for small h at finite h too.
        keeps_calls: whether a called function that cannot be read is kept whole, at finite h (`calls`).
        visited: the points at which the potential was asked for, in order.
    """

    def __init__(
        self,
        space: Space,
        handlers: Mapping[str, Handler],
        path: Path,
        finite: bool = False,
        given: Mapping[History, Sequence[Polynomial]] | None = None,
        points: list[tuple[Polynomial, ...]] | None = None,
        decide: Callable[["Reader", Predicate, Equation], bool] | None = None,
    ) -> None:
        self.decide = decide
        self.space, self.handlers, self.path, self.finite = space, handlers, path, finite
        self.given = given or {}
        self.points: list[tuple[Polynomial, ...]] = [] if points is None else points
        self.notes: set[str] = set()
        self.limits: set[str] = set()
        self.drawn: dict[History, Drawn] = {}
        self.visited: list[tuple[Polynomial, ...]] = []
        self.reads_counters = False
        self.small_steps = False
        self.keeps_calls = False
        self._counters = 0
        self._around: list[Equation] = []

    @property
    def ring(self) -> Ring:
        """The ring of the coefficients."""
        return self.space.ring

    def evaluate(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The outputs of a jaxpr.

        Raises:
            Unreadable: with the primitive, file and line.
        """
        environment: dict[Any, Any] = {}

        def read(variable: Any) -> Any:
            return self.constant(variable.val) if isinstance(variable, core.Literal) else environment[variable]

        for variable, value in zip(jaxpr.constvars, consts, strict=True):
            environment[variable] = self.constant(value)
        for variable, value in zip(jaxpr.invars, args, strict=True):
            environment[variable] = value
        first = choices_first(jaxpr) if self.finite else {}

        def run(numbers: Iterable[int]) -> None:
            for number in numbers:
                equation, choice = jaxpr.eqns[number], first.get(number)
                inputs = equation.invars
                if choice is not None:
                    side = self._side(equation, read(choice.predicate))
                    taken = choice.sides if side is None else choice.sides[side : side + 1]
                    run_for(taken)
                    if side is not None:
                        inputs = [v if v is choice.predicate else taken[0] for v in inputs]
                outputs = self._applied(equation, [read(v) for v in inputs])
                environment.update(zip(equation.outvars, outputs, strict=True))

        def run_for(variables: Sequence[Any]) -> None:
            missing = [v for v in variables if not isinstance(v, core.Literal) and v not in environment]
            run(sorted(n for n in needed(jaxpr, missing, made, first) if jaxpr.eqns[n].outvars[0] not in environment))

        made = producers(jaxpr) if first else {}
        if first:
            run_for(jaxpr.outvars)
        else:
            run(range(len(jaxpr.eqns)))
        return [read(v) for v in jaxpr.outvars]

    def _side(self, equation: Equation, which: Any) -> int | None:
        """The side that a choice takes on the present path; None where a handler has to see both."""
        index = np.asarray(which, object).ravel()[0]
        if isinstance(index, bool | np.bool_ | int | np.integer):
            return int(index)
        if self.decide is None or not isinstance(index, Predicate) or index.difference is None:
            return None
        return int(self.decide(self, index, equation))

    def closed(self, program: Any, args: Sequence[Any]) -> list[Any]:
        """The outputs of a closed jaxpr, or of one without constants."""
        if isinstance(program, core.ClosedJaxpr):
            return self.evaluate(program.jaxpr, program.consts, args)
        return self.evaluate(program, (), args)

    def constant(self, value: Any) -> Any:
        """A constant of the program: floats as their author meant them, integers and booleans as they are."""
        if is_symbolic(value):
            return value
        if hasattr(value, "dtype") and is_key_type(value.dtype):
            words = np.asarray(jax.random.key_data(value))
            rows = words.reshape(-1, words.shape[-1])
            return objects([History(tuple(map(int, row))) for row in rows], value.shape)
        array = np.asarray(value)
        return self.symbols(array) if array.dtype.kind == "f" else array

    def symbols(self, value: Any) -> Array:
        """An array of series; numbers become constant ones.

        Raises:
            Unreadable: for an integer of the state in the place of a number.
        """
        array = np.asarray(value)
        if array.dtype == object:
            return array
        if array.dtype.kind not in "iubf":
            raise Unreadable(f"numbers of type {array.dtype}")
        exact = array.dtype.kind == "f"
        items = [self.space.lift(meant(self.ring, v)) if exact else self.space.constant(int(v)) for v in array.ravel()]
        return objects(items, array.shape)

    def place(self, equation: Equation) -> str:
        """File and line of an equation, or of the innermost call around it that has one."""
        for around in (equation, *reversed(self._around)):
            if found := short_place(source_place(around)):
                return found
        return ""

    @property
    def has_counters(self) -> bool:
        """True if an integer of the state has entered the arithmetic."""
        return self._counters > 0

    def counter(self, integer: Unknown) -> Series:
        """A number of its own for an integer of the state. Raises Unreadable where that is not asked for."""
        if not self.reads_counters:
            raise Unreadable(COUNTER)
        self._counters += 1
        return self.space.lift(self.ring.generator(Memory(f"counter {self._counters}", integer.least)))

    @property
    def here(self) -> str:
        """File and line of what is being read."""
        return self.place(self._around[-1]) if self._around else ""

    def is_positive(self, number: int) -> bool:
        """True for a generator that is positive on all of the state space."""
        return is_positive(self.ring.generators[number])

    def _applied(self, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        self._around.append(equation)
        try:
            return self._handled(equation, inputs)
        except Unreadable as error:
            if error.place:
                raise
            raise type(error)(error.reason, self.place(equation)) from None
        finally:
            self._around.pop()

    def _handled(self, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        name = equation.primitive.name
        handler = self.handlers.get(name)
        if handler is not None and name in STRUCTURAL:
            return handler(self, equation, inputs)
        discrete = all(is_discrete(v.aval.dtype) for v in equation.outvars)
        if discrete and any(map(has_unknown, inputs)) and name not in KEEPS_UNKNOWN:
            bound = _least_sum(inputs) if name == "add" else None
            return [unknown(v.aval, bound) for v in equation.outvars]
        if discrete and not any(map(is_symbolic, inputs)):
            return numbers(equation, inputs)
        if handler is None:
            raise Unreadable(f"primitive {name}")
        return handler(self, equation, inputs)


def unknown(aval: Any, least: int | None = None) -> Array:
    """Integers or predicates of which nothing is known, or a bound from below."""
    size = int(np.prod(aval.shape, dtype=int))
    if np.dtype(aval.dtype).kind == "b":
        return objects([Predicate(None) for _ in range(size)], aval.shape)  # each a flag of its own
    return objects([UNKNOWN if least is None else Unknown(least)] * size, aval.shape)


def least(value: Any) -> int | None:
    """The least that integers of the program may be; None if no bound is known."""
    bounds = [x.least if isinstance(x, Unknown) else x for x in np.ravel(np.asarray(value))]
    known = [int(x) for x in bounds if isinstance(x, int | np.integer)]
    return min(known) if known and len(known) == len(bounds) else None


def _least_sum(inputs: Sequence[Any]) -> int | None:
    bounds = [least(value) for value in inputs]
    return None if None in bounds else sum(bound for bound in bounds if bound is not None)


def numbers(equation: Equation, inputs: list[Any]) -> list[Any]:
    """A primitive on integers and booleans of the program."""
    with jax.ensure_compile_time_eval():
        out = bind(equation, inputs)
    return [np.asarray(o) for o in out] if equation.primitive.multiple_results else [np.asarray(out)]


COUNTER = "a counter of the state in the arithmetic"
STRUCTURAL = frozenset(
    {
        *CALLS,
        *("scan", "while", "cond", "custom_linear_solve", "uninterpreted"),
        *("random_split", "random_fold_in", "random_wrap", "random_unwrap", "random_clone", "random_seed"),
        *("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "concatenate", "split"),
        *("stack", "unstack", "rev", "iota", "convert_element_type"),
    }
)
"""Primitives that their handler reads whatever the inputs are: calls, keys, and what NumPy does on any array."""
KEEPS_UNKNOWN = frozenset(
    {"select_n", "gather", "dynamic_slice", "dynamic_update_slice", "scatter", "pad", "not", "eq", "and", "or"}
)
"""Primitives whose handler knows what to do with an integer of the state."""
