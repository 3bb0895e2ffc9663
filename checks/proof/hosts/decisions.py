"""Branches of Python on what is not known: the code is run once for each way, and the ways are joined by a choice.

`if u < a:` asks a symbol for its truth. Neither side is taken for granted: the run is repeated with the other answer,
and each number of the outcome becomes `select(u < a, one way, the other way)`, which the reader knows from JAX.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jax import lax
from jax.extend import source_info_util

from sgmcmc_verification.checks.proof.errors import TooManyBranches, Unreadable
from sgmcmc_verification.checks.tracing.noise_tape import short_place

MOST_WAYS = 32
"""Ways through the branches of one function that are run."""
MACHINERY = frozenset(
    {"jax", "jaxlib", "numpy", "scipy", "torch", "contextlib", "functools", "copy", "dataclasses"}
    | {"jaxtyping", "beartype"}
)
"""Packages whose frames are nobody's sampler."""
MODES = ("adapters.torch.recorder", "adapters.torch.noise_tape")
"""Modules that answer in the middle of an operation of torch."""
CHECKS = str(Path(__file__).resolve().parents[2])


class Question(NamedTuple):
    """A predicate that was asked for, the answer, and the traceback of the code."""

    predicate: Any
    answer: bool
    traceback: Any


class Way(NamedTuple):
    """The outcome of a function on one way: its form, and its numbers as values of JAX."""

    form: Any
    values: list[Any]


@dataclass(eq=False)
class Run:
    """One run of a function.

    Attributes:
        forced: the answers to the first questions; later ones are answered with yes.
        asked: the predicates that were asked for, and what was answered.
        refused: the first thing that could not be read, which the code may have caught.
        chosen: integers that a way has chosen a value for, by their identity.
    """

    forced: Sequence[bool] = ()
    asked: list["Question"] = field(default_factory=list)
    refused: Unreadable | None = None
    chosen: dict[int, tuple[Any, int]] = field(default_factory=dict)


_present: ContextVar[Run | None] = ContextVar("run", default=None)


def refuse(reason: str) -> Unreadable:
    """The error of something that cannot be read, with file and line of the code that asked for it."""
    error = Unreadable(reason, place())
    run = _present.get()
    if run is not None and run.refused is None:
        run.refused = error
    return error


def place() -> str:
    """File and line of the innermost code that is neither a library's nor of the checks."""
    frame = inspect.currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        file = frame.f_code.co_filename
        passed = module.partition(".")[0] in MACHINERY or module.endswith(MODES)
        if not passed and not file.startswith(("<", CHECKS)):
            return short_place((Path(file).resolve(), frame.f_lineno))
        frame = frame.f_back
    return ""


def decided(predicate: Any) -> bool:
    """The answer of the present run to a predicate, a boolean of JAX. Raises Unreadable outside of a run."""
    run = _present.get()
    if run is None:
        raise Unreadable("a branch on the state or on draws where none is followed", place())
    number = len(run.asked)
    if number >= MOST_WAYS:
        error = refuse(f"more than {MOST_WAYS} questions about the state or draws on one way")
        raise TooManyBranches(error.reason, error.place)
    answer = run.forced[number] if number < len(run.forced) else True
    run.asked.append(Question(predicate, answer, source_info_util.current().traceback))
    return answer


def chosen(value: Any, choose: Callable[[], int]) -> int:
    """The integer that a value of JAX is on the present way, which is chosen once."""
    run = _present.get()
    if run is None:
        return choose()
    if id(value) not in run.chosen:
        run.chosen[id(value)] = value, choose()
    return run.chosen[id(value)][1]


@contextmanager
def running(run: Run) -> Iterator[None]:
    """A context in which a run answers."""
    token = _present.set(run)
    try:
        yield
    finally:
        _present.reset(token)


def every_way(function: Callable[[], Way]) -> Way:
    """The outcome of a function on all ways, joined by choices.

    Raises:
        Unreadable: for more than `MOST_WAYS` of them, if one raises, or if they end in different forms.
    """
    count = 0

    def joined(forced: list[bool]) -> Way:
        nonlocal count
        count += 1
        if count > MOST_WAYS:
            raise TooManyBranches(f"more than {MOST_WAYS} ways through the branches of a step", where)
        run = Run(forced)
        way = _one(function, run)
        for number in range(len(run.asked) - 1, len(forced) - 1, -1):
            question = run.asked[number]
            other = joined([*(q.answer for q in run.asked[:number]), not question.answer])
            yes, no = (way, other) if question.answer else (other, way)
            with source_info_util.user_context(question.traceback):
                way = _choice(question.predicate, yes, no)
        return way

    where = place()
    return joined([])


def _one(function: Callable[[], Way], run: Run) -> Way:
    try:
        with running(run):
            way = function()
    except Unreadable:
        raise
    except Exception as error:
        if run.refused is not None:  # what came of it, such as a failed conversion
            raise run.refused from error
        if run.asked:
            raise Unreadable(
                f"a branch on the state or on draws that ends in {type(error).__name__}: {error}"
            ) from error
        raise
    if run.refused is not None:
        raise run.refused
    return way


def _choice(predicate: Any, yes: Way, no: Way) -> Way:
    if yes.form != no.form or any(a.shape != b.shape or a.dtype != b.dtype for a, b in _pairs(yes, no)):
        raise Unreadable("a branch on the state or on draws whose sides return different forms of a state")
    return Way(yes.form, [a if a is b else lax.select_n(predicate, b, a) for a, b in _pairs(yes, no)])


def _pairs(yes: Way, no: Way) -> Iterator[tuple[Any, Any]]:
    return zip(yes.values, no.values, strict=True)
