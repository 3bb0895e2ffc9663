"""Branches of a step: every comparison that its code makes, and the margin by which it goes one way or the other.

A law that is computed from steps that all take one side of a branch says nothing of the other. The jaxpr is walked with
the draws on the tape; of each comparison, maximum, clamp, selection and `cond` in the code of a sampler the margin is
kept: what is compared, less what it is compared with. Branches of targets, of estimators and of JAX itself are theirs.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core

from sgmcmc_verification.checks.core.error_origin import SUITE
from sgmcmc_verification.checks.programs.operations import subjaxprs
from sgmcmc_verification.checks.tracing.noise_tape import (
    Noise,
    Player,
    Program,
    evaluate,
    file_of,
    short_place,
    source_place,
)

JAX = Path(jax.__file__).resolve().parent
COMPARISONS = {"lt", "le", "gt", "ge", "max", "min"}
THEIRS = (SUITE / "targets", SUITE / "samplers" / "estimators", SUITE / "checks")
"""Folders whose branches are not those of a sampler."""
PLANTED = SUITE / "checks" / "faults"
"""A folder of samplers among them."""


class Branch(NamedTuple):
    """A place where a program goes one way or another.

    Attributes:
        kind: primitive.
        place: file and line.
    """

    kind: str
    place: str

    @property
    def text(self) -> str:
        """`max at my_sampler.py:12`."""
        return f"{self.kind} at {self.place}"


class _Watcher(Player):
    """Plays noise, walks into every function, and keeps the margins of comparisons."""

    walks = True

    def __init__(self, noise: Noise):
        super().__init__(noise)
        self.branches: list[Branch] = []
        self.margins: list[jax.Array] = []
        self.callers: list[Any] = []

    def seen(self, equation: Any, inputs: Sequence[Any]) -> None:
        margin = _margin(equation.primitive.name, inputs)
        if margin is None:
            return
        # what JAX has traced for one caller it keeps for the next: inside of its functions the place is the caller's
        place = place_of(self.callers[0] if self.callers else equation)
        if place is not None:
            self.branches.append(Branch(equation.primitive.name, place))
            self.margins.append(jnp.stack([jnp.min(margin), jnp.max(margin)]))

    @contextlib.contextmanager
    def within(self, equation: Any) -> Iterator[None]:
        """Functions of JAX stand at the place where they are called."""
        if self.callers or not file_of(equation).is_relative_to(JAX):
            yield
            return
        self.callers.append(equation)
        yield
        self.callers.pop()


def _margin(name: str, inputs: Sequence[Any]) -> Any:
    """Number whose sign tells the side; None for what is no branch between real numbers."""
    if name in COMPARISONS:
        a, b = inputs
        return a - b if jnp.issubdtype(jnp.result_type(a), jnp.floating) else None
    if name == "clamp":
        low, value, high = inputs
        return jnp.minimum(value - low, high - value) if jnp.issubdtype(jnp.result_type(value), jnp.floating) else None
    if name in ("select_n", "cond"):
        return jnp.asarray(inputs[0], float) - 0.5
    return None


def place_of(equation: Any) -> str | None:
    """File and line of the innermost line of an author that is not JAX; None for targets, estimators and checks."""
    place = source_place(equation)
    if place is None:
        return None
    theirs = any(place[0].is_relative_to(folder) for folder in THEIRS) and not place[0].is_relative_to(PLANTED)
    return None if theirs else short_place(place)


def branches(program: Program, *args: Any) -> tuple[list[Branch], Callable[..., jax.Array]]:
    """The branches of a program, and (noise, *args) -> smallest and largest margin (k, 2) of each.

    A margin that is negative and positive over all states, draws and step sizes tells of a branch whose sides are
    both taken. Branches inside of loops whose length is not fixed are not followed.

    Args:
        program: recorded by the noise tape.
        args: example arguments.
    """
    closed, found = program.jaxpr, []

    def margins(noise: Noise, *args: Any) -> jax.Array:
        watcher = _Watcher(noise)
        evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(args), watcher)
        found[:] = watcher.branches
        return jnp.stack(watcher.margins) if watcher.margins else jnp.zeros((0, 2))

    counts = [program.count(kind) for kind in ("normal", "uniform", "integer")]
    example = Noise(jnp.zeros(counts[0]), jnp.zeros(counts[1]), jnp.zeros(counts[2], int))
    jax.eval_shape(margins, example, *args)
    return list(found), margins


def walkable(jaxpr: core.Jaxpr) -> bool:
    """True if the program has a branch at all."""
    return any(
        equation.primitive.name in {*COMPARISONS, "clamp", "select_n", "cond"}
        or any(walkable(sub) for sub in subjaxprs(equation.params))
        for equation in jaxpr.eqns
    )
