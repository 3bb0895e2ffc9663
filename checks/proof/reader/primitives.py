"""All primitives that are read."""

from collections.abc import Mapping, Sequence

from sgmcmc_verification.checks.proof.draws import History
from sgmcmc_verification.checks.proof.reader.arithmetic import ARITHMETIC
from sgmcmc_verification.checks.proof.reader.control import CONTROL
from sgmcmc_verification.checks.proof.reader.interpreter import Handler, Reader
from sgmcmc_verification.checks.proof.reader.linear_algebra import LINEAR_ALGEBRA
from sgmcmc_verification.checks.proof.reader.moves import MOVES
from sgmcmc_verification.checks.proof.reader.paths import Path
from sgmcmc_verification.checks.proof.reader.predicates import PREDICATES, decided, on_integers
from sgmcmc_verification.checks.proof.reader.randomness import KEYS
from sgmcmc_verification.checks.proof.reader.taylor import TAYLOR
from sgmcmc_verification.checks.proof.ring import Polynomial
from sgmcmc_verification.checks.proof.series import Space

READ: dict[str, Handler] = {
    **ARITHMETIC,
    **MOVES,
    **PREDICATES,
    **KEYS,
    **CONTROL,
    **LINEAR_ALGEBRA,
    **TAYLOR,
}
OF_INTEGERS = (
    *("add", "sub", "mul", "neg", "div", "lt", "le", "gt", "ge", "eq", "ne", "max", "min", "clamp"),
    *("dynamic_slice", "dynamic_update_slice", "gather"),
)
"""Primitives that may be given a truth as an integer."""
HANDLERS = READ | {name: on_integers(READ[name]) for name in OF_INTEGERS}
"""Primitive -> how it is read."""


def new_reader(
    space: Space,
    path: Path | None = None,
    finite: bool = False,
    given: Mapping[History, Sequence[Polynomial]] | None = None,
    points: list[tuple[Polynomial, ...]] | None = None,
) -> Reader:
    """A reader that knows all primitives; see `Reader`."""
    return Reader(space, HANDLERS, Path() if path is None else path, finite, given, points, decided)
