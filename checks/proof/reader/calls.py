"""A function that cannot be read inside, kept whole: a number of which nothing is known but what it is a function of.

Such as the median of distances by bisection over their bits. Two calls are the same number if their programs are the
same text and their inputs the same polynomials. An identity that holds for any such number holds for this one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend import core
from jax.interpreters.partial_eval import dce_jaxpr

from sgmcmc_verification.checks.proof.errors import Unreadable
from sgmcmc_verification.checks.proof.functions import Function
from sgmcmc_verification.checks.proof.reader.values import Array, is_symbolic, scalar
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring
from sgmcmc_verification.checks.proof.series import Series, Space


@dataclass(frozen=True)
class Call(Function):
    """The one real number that a program makes of others.

    Attributes:
        program: its text.
        arguments: all numbers that go into it.
    """

    program: str
    arguments: tuple[Polynomial, ...]

    def derivative(self, ring: Ring, number: int, variable: int) -> Polynomial:
        """Nothing is known of it."""
        del ring, number, variable
        raise Unreadable("the derivative of a function that is kept whole")

    def value(self, at: Any) -> None:
        """Nothing is known of it: any number."""
        del at

    def __str__(self) -> str:
        return "c"


def without_dead_code(program: Any, outputs: int | None = None) -> Any:
    """A closed jaxpr without what no output depends on, such as diagnostics; with the first few outputs alone."""
    count = len(program.jaxpr.outvars)
    asked = [outputs is None or i < outputs for i in range(count)]
    live, _ = dce_jaxpr(program.jaxpr, asked, instantiate=True)
    return program.replace(jaxpr=live)


def whole_call(space: Space, program: Any, inputs: Sequence[Any], error: Unreadable) -> Array:
    """The output of a program as a number of its own. Raises the error of reading it unless it maps reals to one."""
    program = without_dead_code(program if isinstance(program, core.ClosedJaxpr) else core.ClosedJaxpr(program, ()))
    jaxpr, consts = program.jaxpr, program.consts
    outputs = [v.aval for v in jaxpr.outvars]
    entries = [entry for value in inputs if is_symbolic(value) for entry in np.ravel(value)]
    real = all(isinstance(entry, Series) and entry.is_constant for entry in entries)
    if len(outputs) != 1 or outputs[0].shape or np.dtype(outputs[0].dtype).kind != "f" or not real or len(consts):
        raise error
    numbers = [repr(np.asarray(value).tolist()) for value in inputs if not is_symbolic(value)]
    text = "; ".join([str(jaxpr), *numbers])
    arguments = tuple(entry.constant_term for entry in entries)
    return scalar(space.lift(space.ring.generator(Call(text, arguments))))
