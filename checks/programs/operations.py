"""The programs within a program of JAX, and its operations by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

CALLS = frozenset(
    {
        *("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
        *("checkpoint", "remat", "remat2"),
    }
)
"""Operations that call a program once."""


class Unsupported(Exception):
    """A program, or an operation of it, that is left to XLA."""


def called(params: Mapping[str, Any]) -> tuple[Any, Sequence[Any]] | None:
    """The program that an operation of `CALLS` calls, and its constants; None if it shows none."""
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = params.get(key)
        if isinstance(inner, core.ClosedJaxpr):
            return inner.jaxpr, inner.consts
        if isinstance(inner, core.Jaxpr):
            return inner, ()
    return None


def subjaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    """The programs among the parameters of an equation."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, core.ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, core.Jaxpr):
                yield item


def turn_by_turn(
    params: Mapping[str, Any], inputs: Sequence[Any], run: Callable[[Any, Sequence[Any], Sequence[Any]], Sequence[Any]]
) -> list[Any]:
    """The outputs of a `scan` whose body `run(program, constants, inputs)` follows, one turn after the other."""
    body, length = params["jaxpr"], params["length"]
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    consts, carry, xs = inputs[:n_consts], inputs[n_consts : n_consts + n_carry], inputs[n_consts + n_carry :]
    order = range(length - 1, -1, -1) if params["reverse"] else range(length)
    outputs: list[Any] = [None] * length
    for i in order:
        results = run(body.jaxpr, body.consts, [*consts, *carry, *(x[i] for x in xs)])
        carry, outputs[i] = results[:n_carry], results[n_carry:]
    stacked = [jnp.stack(column) for column in zip(*outputs, strict=True)] if length else []
    return [*carry, *stacked]


def operation_names(jaxpr: Any) -> Iterator[str]:
    """The names of the operations of a program in their order, those of the programs in it behind each of theirs."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in subjaxprs(equation.params):
            yield from operation_names(inner)


def rounds_to_single(jaxpr: Any) -> bool:
    """True if some operation of a program makes numbers in single precision."""
    single = lambda v: getattr(v.aval, "dtype", None) == np.float32
    return any(
        any(map(single, equation.outvars)) or any(map(rounds_to_single, subjaxprs(equation.params)))
        for equation in jaxpr.eqns
    )


def operations_and_numbers(program: core.ClosedJaxpr) -> Iterator[str | float]:
    """The same, each name followed by the numbers that are written into the program; those that it holds come first."""
    yield from (np.asarray(value).item() for value in program.consts if _is_number(value))
    yield from _with_numbers(program.jaxpr)


def _with_numbers(jaxpr: core.Jaxpr) -> Iterator[str | float]:
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        yield from (
            np.asarray(v.val).item() for v in equation.invars if isinstance(v, core.Literal) and _is_number(v.val)
        )
        for inner in subjaxprs(equation.params):
            yield from _with_numbers(inner)


def one_program(programs: Mapping[int, Sequence[str | float]]) -> bool:
    """True if programs for several sizes n have the same operations, and in them the same numbers or a + b n^p.

    A power of the size enters a step in many ways (degrees of freedom, a mean). Four sizes or more tell it from what
    differs for some of them.
    """
    if len({len(each) for each in programs.values()}) > 1:
        return False
    return all(_one_rule(entries, np.array(list(programs), float)) for entries in zip(*programs.values(), strict=True))


def _one_rule(entries: Sequence[str | float], sizes: np.ndarray) -> bool:
    if len(set(entries)) == 1:
        return True
    if any(isinstance(each, str) for each in entries):
        return False
    values = np.array(entries, float)
    for power in (1.0, -1.0, 0.5, -0.5, 2.0):
        terms = sizes**power
        slope = (values[-1] - values[0]) / (terms[-1] - terms[0])
        if np.allclose(values, values[0] + slope * (terms - terms[0]), rtol=1e-9, atol=0):
            return True
    return False


def _is_number(value: Any) -> bool:
    """True for one number that is no key."""
    return np.size(value) == 1 and not jnp.issubdtype(jnp.result_type(value), jax.dtypes.extended)
