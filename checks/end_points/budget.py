"""A budget of CPU time for runs, which are made in pieces, and a line that says how far they are."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from sgmcmc_verification.checks.core.check import Inconclusive

Show = Callable[[str], None]

_ends: ContextVar[float | None] = ContextVar("CPU time of the process at which runs end", default=None)
_show: ContextVar[Show | None] = ContextVar("what shows how far runs are", default=None)


@contextmanager
def budget(seconds: float | None, show: Show | None = None) -> Iterator[None]:
    """End runs that are made in pieces after some seconds of CPU time of this process.

    Args:
        seconds: from now on; None for no end.
        show: is called with a line after each piece.
    """
    ends = None if seconds is None else time.process_time() + seconds
    tokens = _ends.set(ends), _show.set(show)
    try:
        yield
    finally:
        _ends.reset(tokens[0])
        _show.reset(tokens[1])


@contextmanager
def share(number: int) -> Iterator[None]:
    """Leave to what runs here one of `number` equal parts of what is left of the budget."""
    ends = _ends.get()
    left = None if ends is None else max(ends - time.process_time(), 0.0) / number
    with budget(left, _show.get()):
        yield


def is_spent() -> bool:
    """True once the budget has ended."""
    ends = _ends.get()
    return ends is not None and time.process_time() >= ends


def require_budget() -> None:
    """Raise Inconclusive if the budget has ended."""
    if is_spent():
        raise Inconclusive("the budget (--budget) had ended before")


def pieces(count: int, size: int, what: str) -> Iterator[slice]:
    """Slices of `size` that make up `range(count)`, until the budget has ended; none if it had ended before.

    Args:
        count: of values.
        size: of a piece; the last one may be smaller.
        what: is made, for the line that is shown.
    """
    began, show = time.process_time(), _show.get()
    for first in range(0, count, size):
        if is_spent():
            return
        last = min(first + size, count)
        yield slice(first, last)
        if show is not None:
            show(f"{what}: {last} of {count}, {time.process_time() - began:.0f} s")


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Values (k, n, K) of n runs from those of pieces. Raises Inconclusive if the budget ended before the first."""
    if not parts:
        require_budget()
    return np.concatenate(parts, axis=1)
