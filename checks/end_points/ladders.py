"""Temperatures of walkers, where a sampler holds or makes them: in attributes, closures, its state, or in a step.

A sampler at several temperatures says nowhere which walker has which. A list of as many positive numbers as there are
walkers, rising or falling from that of the position, may be temperatures or their inverses: a hypothesis, which runs
from draws of those laws bear out or not.
"""

import itertools
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sgmcmc_verification.checks.programs.evaluation import bind, holds_keys
from sgmcmc_verification.checks.proof.hosts.hidden import is_foreign, reached
from sgmcmc_verification.samplers.interface.aliases import Estimator, State
from sgmcmc_verification.samplers.interface.capabilities import on_host
from sgmcmc_verification.samplers.interface.copied import copied
from sgmcmc_verification.samplers.interface.opened_state import is_tensor
from sgmcmc_verification.samplers.interface.sampler import Sampler

MOST = 2
"""Ladders that are tried: each costs runs."""
SIZE = 0.1
"""Size of the step in which a list may be made."""


def ladders(
    sampler: Sampler, state: State, estimator: Estimator, number: int, temperature: float
) -> list[tuple[float, ...]]:
    """Temperatures that the walkers beside the position may have.

    Args:
        sampler: whose objects are looked through.
        state: of it, likewise.
        estimator: of a step from it.
        number: of the walkers beside the position.
        temperature: of the position.
    """
    made = _made_in_python if on_host(sampler) else _made_in_jax
    constant = _constant_leaves(sampler, state, estimator, number)
    held = itertools.chain(constant, reached(sampler), made(sampler, state, estimator, number))
    found: dict[tuple[str, ...], tuple[float, ...]] = {}
    for values in _lists(held, number):
        hot = values if values[-1] > values[0] else 1 / values
        # with all walkers in the list the first one has the temperature of the position, whatever the unit
        ladder = hot * (temperature / hot[0]) if len(values) > number else np.append(temperature, hot)
        if np.all(np.diff(ladder) >= 0) and ladder[-1] > temperature:
            found.setdefault(tuple(f"{t:.6g}" for t in ladder[1:]), tuple(map(float, ladder[1:])))
    return list(found.values())[:MOST]


def _constant_leaves(sampler: Sampler, state: State, estimator: Estimator, number: int) -> Iterator[np.ndarray]:
    """Lists of a state that another start at its position has, too, as no energies of walkers are."""
    key = np.random.default_rng(1) if on_host(sampler) else jax.random.key(1)
    other = sampler.init(key, sampler.position(state), estimator)
    for pair in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        here, there = (list(_lists(iter([leaf]), number)) for leaf in pair)
        yield from (a for a, b in zip(here, there, strict=False) if np.array_equal(a, b))


def _lists(values: Iterator[Any], number: int) -> Iterator[np.ndarray]:
    """Positive numbers, as many as there are walkers, or walkers beside the position."""
    for value in values:
        if is_tensor(value):
            value = value.detach().numpy()
        if isinstance(value, list | tuple) and all(type(each) in (int, float) for each in value):
            value = np.array(value, float)
        if not isinstance(value, np.ndarray | jax.Array) or np.size(value) not in (number, number + 1):
            continue
        if not jnp.issubdtype(value.dtype, np.number):
            continue
        array = np.ravel(np.asarray(value, float))
        if np.isfinite(array).all() and (array > 0).all():
            yield array


def _made_in_jax(sampler: Sampler, state: State, estimator: Estimator, number: int) -> Iterator[Any]:
    """Constants of the program of a step, and what it makes of constants alone."""
    del number
    step = lambda key, before: sampler.step(key, before, SIZE, estimator)
    closed = jax.make_jaxpr(step)(jax.random.key(0), state)
    yield from closed.consts
    known = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    yield from _from_constants(closed.jaxpr, known)


def _from_constants(jaxpr: core.Jaxpr, known: dict[Any, Any]) -> Iterator[Any]:
    value = lambda v: v.val if isinstance(v, core.Literal) else known[v]
    for equation in jaxpr.eqns:
        inner = equation.params.get("jaxpr")
        keys = any(holds_keys(v.aval) for v in (*equation.invars, *equation.outvars))
        if not keys and all(isinstance(v, core.Literal) or v in known for v in equation.invars):
            out = bind(equation, [np.asarray(value(v)) for v in equation.invars])
            out = out if equation.primitive.multiple_results else [out]
            known.update(zip(equation.outvars, out, strict=True))
            yield from out
        elif isinstance(inner, core.ClosedJaxpr) and len(inner.jaxpr.invars) == len(equation.invars):
            pairs = zip(inner.jaxpr.invars, equation.invars, strict=True)
            # the entries that a loop hands out one by one have another shape inside
            same = [(a, b) for a, b in pairs if _shape(a) == _shape(b)]
            given = {a: value(b) for a, b in same if isinstance(b, core.Literal) or b in known}
            yield from _from_constants(inner.jaxpr, given)


def _shape(variable: Any) -> tuple[int, ...]:
    return variable.aval.shape


def _made_in_python(sampler: Sampler, state: State, estimator: Estimator, number: int) -> Iterator[Any]:
    """Local variables of the functions that a step calls, which it has in the next step too, as no energies are."""
    found: list[Any] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "return" and not is_foreign(frame.f_globals.get("__name__", "")):
            found.extend(np.array(v) if isinstance(v, np.ndarray) else v for v in frame.f_locals.values())

    before, generator, steps = sys.getprofile(), np.random.default_rng(0), []
    state = copied(state)
    for _ in range(2):
        sys.setprofile(profile)
        try:
            state = sampler.step(generator, state, SIZE, estimator)
        finally:
            sys.setprofile(before)
        steps.append(list(_lists(iter(found), number)))
        found.clear()
    yield from (values for values in steps[0] if any(np.array_equal(values, others) for others in steps[1]))
