"""Calls, loops and branches of a program."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs.operations import CALLS, called
from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.reader.calls import whole_call
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader
from sgmcmc_verification.checks.proof.reader.linear_algebra import exponential, is_exponential
from sgmcmc_verification.checks.proof.reader.moves import as_array
from sgmcmc_verification.checks.proof.reader.predicates import decided
from sgmcmc_verification.checks.proof.reader.randomness import drawn, is_draw
from sgmcmc_verification.checks.proof.reader.values import Equation, is_symbolic

MOST_TRIPS = 200
"""Trips of a `while` loop."""


def _call(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """A function that is called, a draw, or the exponential of a matrix."""
    named = equation.primitive.name in ("jit", "pjit")
    if named and is_draw(equation):
        return drawn(reader, equation, inputs)
    if named and is_exponential(equation):
        return exponential(reader, equation, inputs)
    inner = called(equation.params)
    if inner is None:
        raise Unreadable(f"primitive {equation.primitive.name}")
    try:
        return reader.evaluate(*inner, inputs)
    except Unreadable as error:
        if not (reader.keeps_calls and reader.finite):
            raise
        return [whole_call(reader.space, core.ClosedJaxpr(*inner), inputs, error)]


def _scan(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    parameters = equation.params
    constants, carried = parameters["num_consts"], parameters["num_consts"] + parameters["num_carry"]
    fixed, carry, rows = inputs[:constants], list(inputs[constants:carried]), inputs[carried:]
    order = range(parameters["length"])
    outputs: list[list[Any]] = []
    for i in reversed(order) if parameters["reverse"] else order:
        out = reader.closed(parameters["jaxpr"], [*fixed, *carry, *(as_array(np.asarray(row)[i]) for row in rows)])
        carry = out[: len(carry)]
        outputs.append(out[len(carry) :])
    if parameters["reverse"]:
        outputs.reverse()
    return [*carry, *(_stacked(reader, column) for column in zip(*outputs, strict=True))]


def _stacked(reader: Reader, column: Sequence[Any]) -> Any:
    return np.stack([reader.symbols(v) for v in column] if any(map(is_symbolic, column)) else list(column))


def _while(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    parameters = equation.params
    first, second = parameters["cond_nconsts"], parameters["cond_nconsts"] + parameters["body_nconsts"]
    carry = inputs[second:]
    for _ in range(MOST_TRIPS):
        (go,) = reader.closed(parameters["cond_jaxpr"], [*inputs[:first], *carry])
        if not decided(reader, np.asarray(go).item(), equation):
            return carry
        carry = reader.closed(parameters["body_jaxpr"], [*inputs[first:second], *carry])
    raise Unreadable(f"a while loop of more than {MOST_TRIPS} trips")


def _cond(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    index, branches = inputs[0], equation.params["branches"]
    chosen = int(decided(reader, index.item(), equation)) if is_symbolic(index) else int(index)
    if is_symbolic(index) and len(branches) > 2:
        raise Unreadable("a choice of more than two by the state")
    return reader.closed(branches[min(max(chosen, 0), len(branches) - 1)], inputs[1:])


def _linear_solve(reader: Reader, equation: Equation, inputs: list[Any]) -> Sequence[Any]:
    """`custom_linear_solve`: its own program for the solution of a x = b."""
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    before = lengths.matvec + lengths.vecmat
    constants, sides = inputs[before : before + lengths.solve], inputs[sum(lengths) :]
    return reader.closed(programs.solve, [*constants, *sides])


CONTROL: dict[str, Handler] = {
    **dict.fromkeys(CALLS, _call),
    "custom_linear_solve": _linear_solve,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}
