"""All primitives that are read."""

from collections.abc import Mapping, Sequence

from checks.proof.draws import History
from checks.proof.reader.arithmetic import ARITHMETIC
from checks.proof.reader.control import CONTROL
from checks.proof.reader.interpreter import Handler, Reader
from checks.proof.reader.linear_algebra import LINEAR_ALGEBRA
from checks.proof.reader.moves import MOVES
from checks.proof.reader.paths import Path
from checks.proof.reader.predicates import PREDICATES
from checks.proof.reader.randomness import KEYS
from checks.proof.reader.taylor import TAYLOR
from checks.proof.ring import Polynomial
from checks.proof.series import Space

HANDLERS: dict[str, Handler] = {
    **ARITHMETIC,
    **MOVES,
    **PREDICATES,
    **KEYS,
    **CONTROL,
    **LINEAR_ALGEBRA,
    **TAYLOR,
}
"""Primitive -> how it is read."""


def new_reader(
    space: Space,
    path: Path | None = None,
    finite: bool = False,
    given: Mapping[History, Sequence[Polynomial]] | None = None,
    points: list[tuple[Polynomial, ...]] | None = None,
) -> Reader:
    """A reader that knows all primitives; see `Reader`."""
    return Reader(space, HANDLERS, Path() if path is None else path, finite, given, points)
