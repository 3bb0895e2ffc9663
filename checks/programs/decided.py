"""Programs whose branches are taken where whole numbers of the program itself decide.

A count that a state begins with is a number of the program of its first steps: what it decides, such as whether a block
of noise is used up, is known without a step. Such a `cond` is replaced by its branch, a loop around it by its turns;
the rest stays as it is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.extend import core, source_info_util

from sgmcmc_verification.checks.programs.evaluation import bind, holds_keys
from sgmcmc_verification.checks.programs.operations import CALLS, called, subjaxprs, turn_by_turn

FEW = 64
"""Entries of the largest array that is followed."""
TURNS = 128
"""Turns of the longest loop that is written out for what is decided in it."""


def decided(program: core.ClosedJaxpr, matters: Callable[[core.Jaxpr], bool]) -> core.ClosedJaxpr:
    """The program without the `cond`s that its own numbers decide; as it is without one.

    Args:
        program: of any inputs.
        matters: branch -> whether it has to be known which one is taken, of one branch of the `cond` at least.
    """
    if not _chooses(program.jaxpr, matters):
        return program
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in program.jaxpr.invars]
    return jax.make_jaxpr(lambda *inputs: _followed(program.jaxpr, program.consts, inputs, matters))(*shapes)


def _chooses(jaxpr: core.Jaxpr, matters: Callable[[core.Jaxpr], bool]) -> bool:
    """True for a program with a `cond` that matters, outside of long loops."""
    for equation in jaxpr.eqns:
        name, inner = equation.primitive.name, list(subjaxprs(equation.params))
        followed = name in CALLS or (name == "scan" and equation.params["length"] <= TURNS)
        if (name == "cond" and any(map(matters, inner))) or (
            followed and any(_chooses(each, matters) for each in inner)
        ):
            return True
    return False


def _followed(
    jaxpr: core.Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], matters: Callable[[core.Jaxpr], bool]
) -> list[Any]:
    """The outputs of a program, in NumPy as far as they follow from its whole numbers."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_known, consts), strict=True))
    values |= dict(zip(jaxpr.invars, map(_known, inputs), strict=True))
    read = lambda v: _known(v.val) if isinstance(v, core.Literal) else values[v]
    for equation in jaxpr.eqns:
        arguments = [read(v) for v in equation.invars]
        with source_info_util.user_context(equation.source_info.traceback):
            outputs = _outputs(equation, arguments, matters)
        values |= zip(equation.outvars, outputs, strict=True)
    return [read(v) for v in jaxpr.outvars]


def _outputs(equation: Any, arguments: Sequence[Any], matters: Callable[[core.Jaxpr], bool]) -> Sequence[Any]:
    name, params = equation.primitive.name, equation.params
    whole = all(map(_is_whole, equation.outvars)) and all(isinstance(value, np.ndarray) for value in arguments)
    if name == "cond" and isinstance(arguments[0], np.ndarray):
        branches = params["branches"]
        branch = branches[int(np.clip(arguments[0], 0, len(branches) - 1))]
        return _followed(branch.jaxpr, branch.consts, arguments[1:], matters)
    if name == "scan" and params["length"] <= TURNS and _chooses(params["jaxpr"].jaxpr, matters):
        return turn_by_turn(params, arguments, lambda body, consts, turn: _followed(body, consts, turn, matters))
    if name in CALLS and (inner := called(params)) and (whole or _chooses(inner[0], matters)):
        return _followed(*inner, arguments, matters)
    out = bind(equation, arguments if whole else [_traced(value) for value in arguments])
    outputs = out if equation.primitive.multiple_results else [out]
    return [_known(value) for value in outputs] if whole else outputs


def _is_whole(variable: Any) -> bool:
    """True for few whole numbers, or truth values."""
    aval = variable.aval
    if holds_keys(aval) or not hasattr(aval, "dtype"):
        return False
    return not jnp.issubdtype(aval.dtype, jnp.inexact) and aval.size <= FEW


def _known(value: Any) -> Any:
    """Few whole numbers as an array of NumPy; anything else, and what is traced, as it is."""
    if isinstance(value, jax.core.Tracer) or (isinstance(value, jax.Array) and holds_keys(jax.typeof(value))):
        return value
    array = np.asarray(value)
    return array if array.dtype.kind in "iub" and array.size <= FEW else value


def _traced(value: Any) -> Any:
    """A value that an operation of JAX takes without being computed here."""
    return jnp.asarray(value) if isinstance(value, np.ndarray) else value
