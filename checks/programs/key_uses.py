"""The keys that a program consumes, each time that it runs past a draw or a split, in all turns of its loops.

The checker of JAX takes an array of keys for consumed once one of them, at an index that is computed, was: a loop over
`keys[i]` looks like a key that is used in every turn. What runs tells which key each turn has.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs.evaluation import (
    LOOPS,
    RULES,
    Evaluation,
    Line,
    Unsupported,
    bind,
    holds_keys,
    inward,
)
from sgmcmc_verification.checks.programs.operations import CALLS, subjaxprs

CONSUMING = frozenset({"random_bits", "random_gamma", "random_split"})
INDEXING = frozenset({"dynamic_slice", "gather"})


def indexes_keys(jaxpr: Any) -> bool:
    """True for a program that takes keys out of an array at an index that is computed."""
    return any(
        (e.primitive.name in INDEXING and holds_keys(e.invars[0].aval)) or any(map(indexes_keys, subjaxprs(e.params)))
        for e in jaxpr.eqns
    )


def consumes_twice(program: core.ClosedJaxpr, args: Sequence[Any]) -> bool | None:
    """True if some key is consumed twice in a run of a program on `args`; None if it cannot be evaluated.

    A variable of the gamma law takes its mean, whatever its key.
    """
    run = _Recording()
    try:
        with np.errstate(all="ignore"):
            run.run(program.jaxpr, [inward(c) for c in program.consts], [inward(a) for a in args])
    except (Unsupported, NotImplementedError, TypeError, ValueError):
        return None
    used = np.concatenate([np.zeros(0, np.uint64), *run.keys])
    return len(np.unique(used)) < len(used)


class _Recording(Evaluation):
    """An evaluation that keeps the keys of each draw or split, flat."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[np.ndarray] = []

    def apply(self, line: Line, inputs: list[np.ndarray]) -> Sequence[Any]:
        """The outputs of an operation."""
        equation, name = line.equation, line.equation.primitive.name
        if name in CONSUMING:
            self.keys.append(inputs[0].ravel())
        if name == "random_gamma":
            mean = np.log(inputs[1]) if equation.params["log_space"] else inputs[1]
            return [np.broadcast_to(mean, equation.outvars[0].aval.shape)]
        if name not in RULES and name not in LOOPS and name not in CALLS:  # keys are whole numbers here
            outputs = bind(equation, [jax.device_put(value) for value in inputs])
            return [np.asarray(a) for a in (outputs if equation.primitive.multiple_results else [outputs])]
        return super().apply(line, inputs)
