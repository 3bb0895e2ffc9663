"""Steps whose loops come to an end from any state, of the law or not, and steps whose loops take one turn.

A loop that shrinks an interval until a point lies above a level ends for a level below the density where it starts, and
from no other state. A compiled loop cannot be interrupted: who moves a part of a state bounds it.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from sgmcmc_verification.checks.programs.evaluation import along
from sgmcmc_verification.checks.programs.operations import operation_names
from sgmcmc_verification.checks.tracing.noise_tape import Reader, evaluate
from sgmcmc_verification.samplers.interface.from_step import Completed
from sgmcmc_verification.samplers.interface.sampler import Estimator, Sampler
from sgmcmc_verification.samplers.interface.trees import Key, Scalar, State

MOST = 10_000
"""Turns of a loop: more than a proposal that is ever accepted takes."""


class _AsItIs(Reader):
    """Takes draws as they are."""

    def draw(self, kind: str, equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        del kind
        return core.jaxpr_as_fun(equation.params["jaxpr"])(*inputs)

    def unknown(self, primitive: str, inputs: Sequence[Any]) -> None:
        del primitive, inputs


class _Bound(_AsItIs):
    """Takes at most `MOST` turns of a loop."""

    def resolve(self, equation: Any, inputs: Sequence[Any]) -> Sequence[Any] | None:
        if equation.primitive.name != "while":
            return None
        params = equation.params
        a, b = params["cond_nconsts"], params["body_nconsts"]
        test, body = params["cond_jaxpr"], params["body_jaxpr"]
        test_inputs, body_inputs, start = inputs[:a], inputs[a : a + b], inputs[a + b :]

        # under vmap there is a test for each of a batch, along the first axes of all that is carried
        goes_on = lambda held: core.jaxpr_as_fun(test)(*test_inputs, *held)[0]

        def go_on(carry: tuple[Any, ...]) -> jax.Array:
            number, *held = carry
            return jnp.any(goes_on(held)) & (number < MOST)

        def turn(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            number, *held = carry
            after = evaluate(body.jaxpr, body.consts, [*body_inputs, *held], self)
            moves = goes_on(held)
            if moves.ndim:
                after = [jnp.where(along(moves, new), new, old) for new, old in zip(after, held, strict=True)]
            return number + 1, *after

        return jax.lax.while_loop(go_on, turn, (0, *start))[1:]


class _OneTurn(_AsItIs):
    """Takes the first turn of a loop as if it were the only one."""

    unrolls = False

    def resolve(self, equation: Any, inputs: Sequence[Any]) -> Sequence[Any] | None:
        params, name = equation.params, equation.primitive.name
        if name == "while":
            body, inputs = params["body_jaxpr"], inputs[params["cond_nconsts"] :]
            return evaluate(body.jaxpr, body.consts, inputs, self)
        if name == "scan" and params["length"]:
            body, a = params["jaxpr"], params["num_consts"] + params["num_carry"]
            out = evaluate(body.jaxpr, body.consts, [*inputs[:a], *(x[0] for x in inputs[a:])], self)
            kept, each = out[: params["num_carry"]], out[params["num_carry"] :]
            return [*kept, *(jnp.broadcast_to(y, (params["length"], *jnp.shape(y))) for y in each)]
        return None


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with bounded loops, those within a branch aside. Arguments are trees of arrays."""
    return _read_again(function, _Bound(), {"while"})


def with_one_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with loops that take one turn, those within a branch aside. Arguments are trees of arrays."""
    return _read_again(function, _OneTurn(), {"while", "scan"})


def _read_again(function: Callable[..., Any], reader: _AsItIs, loops: set[str]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        jaxpr, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        # not traced again where there is no loop
        found, leaves = loops & set(operation_names(jaxpr.jaxpr)), jax.tree.leaves(args)
        flat = evaluate(jaxpr.jaxpr, jaxpr.consts, leaves, reader) if found else core.jaxpr_as_fun(jaxpr)(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), flat)

    return run


def bounded_sampler(sampler: Sampler) -> Sampler:
    """The sampler with bounded loops in its steps; one that was not completed by the suite as it is."""
    if not isinstance(sampler, Completed):
        return sampler
    step = sampler.step

    def bounded_step(key: Key, state: State, step_size: Scalar, estimator: Estimator) -> State:
        return bounded(lambda key, state, h: step(key, state, h, estimator))(key, state, step_size)

    return dataclasses.replace(sampler, step=bounded_step)
