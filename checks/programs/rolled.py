"""Programs that compute arrays entry by entry, as programs that compute them at once.

A step in Python that is run on symbols is recorded number by number: of fifty coordinates it is a program of tens of
thousands of operations, for which XLA takes a minute. Where entries that are put together were computed alike, the same
operation of the arrays of their inputs takes their place, back to the arrays that the inputs are entries of. Operations
that the record repeats on its different ways are one. Sums of entries are of another order: equal up to round-off.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from sgmcmc_verification.checks.programs import elementwise
from sgmcmc_verification.checks.programs.evaluation import bind, holds_keys

ALIKE = frozenset(elementwise.RULES) - {"optimization_barrier"}
"""Operations of which the entries of the output follow from those of the inputs, at any shape."""
LONG = 4
"""Terms from which on a sum is one of an array."""

Node = int | tuple[int, ...]
"""A value of the program, by number; of single numbers several, as one array."""
Plan = tuple[Callable[..., Any], Sequence[Node]]
"""How a value is made, and of what."""


class _Value(NamedTuple):
    """A value of the program.

    Attributes:
        aval: its shape and type; of an equation with several outputs those of the first.
        equation: that makes it; None for an input, a constant and one of several outputs.
        inputs: of the equation, or all the outputs of which it is one.
        output: which one.
        constant: itself, where the program knows it.
    """

    aval: Any
    equation: Any = None
    inputs: tuple[int, ...] = ()
    output: int | None = None
    constant: Any = None


def rolled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of pytrees, with arrays in the place of their entries wherever these are computed alike."""

    def run(*args: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        leaves = jax.tree.leaves(args)
        outputs = core.jaxpr_as_fun(closed)(*leaves) if closed.effects else _Graph(closed).outputs(leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return run


class _Graph:
    """A program as a graph in which equal operations of equal inputs are one value."""

    def __init__(self, closed: core.ClosedJaxpr) -> None:
        self._values: list[_Value] = []
        self._numbers: dict[Hashable, int] = {}
        self._sums: dict[int, list[int]] = {}
        self._kinds: dict[int, Hashable] = {}
        self._plans: dict[Node, Plan] = {}
        jaxpr = closed.jaxpr
        self._inputs = [self._new(_Value(v.aval)) for v in jaxpr.invars]
        found = dict(zip(jaxpr.invars, self._inputs, strict=True))
        found |= {v: self._constant(v.aval, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}
        number = lambda v: self._constant(v.aval, v.val) if isinstance(v, core.Literal) else found[v]
        for equation in jaxpr.eqns:
            inputs = tuple(map(number, equation.invars))
            key = (equation.primitive, _parameters(equation), inputs)
            made = self._once(key, _Value(equation.outvars[0].aval, equation, inputs))
            for k, v in enumerate(equation.outvars):
                part = _Value(v.aval, None, (made,), k)
                found[v] = self._once((made, k), part) if equation.primitive.multiple_results else made
        self._outputs = [number(v) for v in jaxpr.outvars]
        self._used = Counter(itertools.chain(self._outputs, *(self._values[i].inputs for i in self._reached())))

    def outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of the program, for its inputs."""
        made: dict[Node, Any] = dict(zip(self._inputs, inputs, strict=True))
        for output in self._outputs:
            self._make(output, made)
        return [made[output] for output in self._outputs]

    def _make(self, node: Node, made: dict[Node, Any]) -> None:
        waiting = [node]
        while waiting:
            node = waiting[-1]
            if node not in made:
                function, of = self._plan(node)
                if missing := [each for each in of if each not in made]:
                    waiting += missing
                    continue
                made[node] = function(*(made[each] for each in of))
            waiting.pop()

    # The values, and what they are ------------------------------------------------------------------------------------

    def _new(self, value: _Value) -> int:
        self._values.append(value)
        return len(self._values) - 1

    def _once(self, key: Hashable, value: _Value) -> int:
        if key not in self._numbers:
            self._numbers[key] = self._new(value)
        return self._numbers[key]

    def _constant(self, aval: Any, constant: Any) -> int:
        if holds_keys(aval):
            return self._new(_Value(aval, constant=constant))
        array = np.asarray(constant)
        return self._once((array.dtype.str, array.shape, array.tobytes()), _Value(aval, constant=array))

    def _reached(self) -> Iterable[int]:
        """The values on which the outputs depend."""
        seen, waiting = set(self._outputs), list(self._outputs)
        while waiting:
            new = set(self._values[waiting.pop()].inputs) - seen
            seen |= new
            waiting += new
        return seen

    def _name(self, number: int) -> str:
        equation = self._values[number].equation
        return "" if equation is None else equation.primitive.name

    def _is_number(self, number: int) -> bool:
        return self._values[number].aval.shape == () and not holds_keys(self._values[number].aval)

    def _entry(self, number: int) -> tuple[int, int] | None:
        """The array of one axis and the place in it, of an entry."""
        if self._name(number) != "squeeze" or not self._is_number(number):
            return None
        (inner,) = self._values[number].inputs
        value = self._values[inner]
        if self._name(inner) != "slice" or value.aval.shape != (1,):
            return None
        return value.inputs[0], value.equation.params["start_indices"][0]

    def _terms(self, number: int) -> list[int]:
        """The terms of a sum of numbers, those left out that are 0."""
        if number not in self._sums:
            terms, waiting = [], [number]
            while waiting:
                each = waiting.pop()
                is_sum = self._name(each) == "add" and self._is_number(each)
                if is_sum and (each == number or self._used[each] == 1):
                    waiting += self._values[each].inputs[::-1]
                elif not _is_zero(self._values[each].constant):
                    terms.append(each)
            self._sums[number] = terms
        return self._sums[number]

    def _is_long_sum(self, number: int) -> bool:
        is_sum = self._name(number) == "add" and self._is_number(number)
        return is_sum and self._values[number].aval.dtype.kind == "f" and len(self._terms(number)) >= LONG

    def _kind(self, number: int) -> Hashable:
        """A kind that numbers share which can be computed at once; the number itself where there are no others."""
        if number not in self._kinds:
            self._kinds[number] = self._found_kind(number)
        return self._kinds[number]

    def _found_kind(self, number: int) -> Hashable:
        value = self._values[number]
        if value.constant is not None:
            return "constant"
        if entry := self._entry(number):
            return "entry", entry[0]
        if self._is_long_sum(number):
            return "sum", len(self._terms(number))
        if self._name(number) in ALIKE and all(map(self._is_number, value.inputs)):
            return value.equation.primitive, _parameters(value.equation)
        return number

    # Their plans ------------------------------------------------------------------------------------------------------

    def _plan(self, node: Node) -> Plan:
        if node not in self._plans:
            self._plans[node] = self._of_array(node) if isinstance(node, tuple) else self._of_value(node)
        return self._plans[node]

    def _of_value(self, number: int) -> Plan:
        value = self._values[number]
        if value.constant is not None:
            return lambda: value.constant, ()
        if self._name(number) == "concatenate" and len(value.aval.shape) == 1:
            return self._of_pieces([self._alone(piece) for piece in value.inputs])
        if self._is_long_sum(number) and len(set(map(self._kind, self._terms(number)))) == 1:
            return jnp.sum, (tuple(self._terms(number)),)
        if value.output is not None:
            return lambda outputs: outputs[value.output], value.inputs
        return lambda *inputs: bind(value.equation, inputs), value.inputs

    def _alone(self, piece: int) -> tuple[int, bool]:
        """A piece of an array as a number if it is a single one, and whether it is."""
        value = self._values[piece]
        if value.constant is not None and value.aval.shape == (1,):
            return self._constant(value.aval, value.constant[0]), True
        if self._name(piece) in ("reshape", "broadcast_in_dim") and value.aval.shape == (1,):
            (inner, *_) = value.inputs
            if self._is_number(inner):
                return inner, True
        return piece, False

    def _of_pieces(self, pieces: Sequence[tuple[int, bool]]) -> Plan:
        nodes: list[Node] = []
        for alone, run in itertools.groupby(pieces, key=lambda piece: piece[1]):
            numbers = [number for number, _ in run]
            nodes += [tuple(numbers)] if alone else numbers
        return _joined, nodes

    def _of_array(self, numbers: tuple[int, ...]) -> Plan:
        """Of an array of numbers: each run of those that are alike at once."""
        count, values = len(numbers), [self._values[number] for number in numbers]
        if len(set(numbers)) == 1:
            return lambda x: jnp.broadcast_to(x, (count,)), numbers[:1]
        runs = [(kind, tuple(run)) for kind, run in itertools.groupby(numbers, key=self._kind)]
        if len(runs) > 1:
            return _joined, [run for _, run in runs]
        kind = runs[0][0]
        if kind == "constant":
            array = np.array([value.constant for value in values])
            return lambda: array, ()
        if isinstance(kind, tuple) and kind[0] == "entry":
            places = np.array([place for _, place in filter(None, map(self._entry, numbers))])
            return lambda x: _taken(x, places), (kind[1],)
        if isinstance(kind, tuple) and kind[0] == "sum":
            terms = tuple(term for number in numbers for term in self._terms(number))
            return lambda x: jnp.sum(x.reshape(count, -1), axis=1), (terms,)
        equation = values[0].equation
        columns = list(zip(*(value.inputs for value in values), strict=True))
        return lambda *inputs: equation.primitive.bind(*map(jnp.asarray, inputs), **equation.params), columns


def _joined(*pieces: Any) -> Any:
    first, *more = pieces
    return jnp.concatenate([jnp.reshape(piece, -1) for piece in pieces]) if more else first


def _taken(x: Any, places: np.ndarray) -> Any:
    """Entries of an array of one axis; itself, or a part of it, where that is what they are."""
    first, count = int(places[0]), len(places)
    if np.array_equal(places, np.arange(first, first + count)):
        return x if count == len(x) else lax.slice(x, (first,), (first + count,))
    return x[places]


def _is_zero(constant: Any) -> bool:
    return constant is not None and constant.dtype.kind == "f" and not constant.any()


def _parameters(equation: Any) -> Hashable:
    """The parameters of an operation, equal for equal ones; the equation itself where they cannot be compared."""
    found = tuple(sorted(equation.params.items()))
    try:
        hash(found)
    except TypeError:
        return id(equation)
    return found
