"""Calls back to Python in a traced step: what they read besides their arguments is in no program."""

from collections.abc import Callable, Iterator
from typing import Any

import jax

from sgmcmc_verification.checks.core.error_origin import SUITE
from sgmcmc_verification.checks.programs.operations import subjaxprs
from sgmcmc_verification.checks.tracing.noise_tape import short_place, source_place

PRIMITIVES = {"pure_callback", "io_callback"}
"""Those that return something; `jax.debug.callback` does not."""


def callbacks(function: Callable[..., Any], *arguments: Any) -> tuple[str, ...]:
    """`io_callback at my_sampler.py:12` for every call back that is not one of the suite's own."""
    return tuple(dict.fromkeys(_found(jax.make_jaxpr(function)(*arguments).jaxpr)))


def _found(jaxpr: Any) -> Iterator[str]:
    for equation in jaxpr.eqns:
        if equation.primitive.name in PRIMITIVES:
            place = source_place(equation)
            if place is None or not place[0].is_relative_to(SUITE):
                yield f"{equation.primitive.name} at {short_place(place) or 'an unknown place'}"
        for inner in subjaxprs(equation.params):
            yield from _found(inner)
