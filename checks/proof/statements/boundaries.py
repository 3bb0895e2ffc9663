"""Continuity of a step where its regions meet.

exp(-H) may be kept on each side of a boundary and not across it: a step that is a hundred times slower in one region
has c_k = 0 in both, and a law of its own. With D and Q continuous there is no flux through a boundary that the other
side does not answer; where nothing is declared, drift and covariance have to be continuous themselves. Decided at
points of the boundary to 50 digits, so that the answer is at best `verified`, and a jump leaves a proof undecided.
"""

import itertools
from collections.abc import Callable, Iterator

import mpmath

from sgmcmc_verification.checks.proof.draws import evaluator
from sgmcmc_verification.checks.proof.errors import NotReal
from sgmcmc_verification.checks.proof.expansion import Expansion, Region
from sgmcmc_verification.checks.proof.functions import Values, is_positive
from sgmcmc_verification.checks.proof.ring import Polynomial, Ring, Value
from sgmcmc_verification.checks.proof.statements.orders import drift_and_covariance
from sgmcmc_verification.checks.proof.statements.result import Result
from sgmcmc_verification.checks.proof.zero import DIGITS, at_random

CONTINUOUS = "continuity between regions"
EQUATION = "D and Q (or drift and covariance) agree where regions meet"
CLOSE = mpmath.mpf(10) ** -40
"""Distance from the boundary at which both sides are compared."""
JUMP = mpmath.mpf(10) ** -8
"""Relative difference above which there is a jump; a root of the distance is 1e-20."""
TRIES = 20


def continuous(expansion: Expansion) -> list[Result]:
    """One result for each pair of regions that a single condition separates."""
    pairs = itertools.combinations(expansion.regions, 2)
    return [_compared(expansion, *pair, p) for pair in pairs if (p := _separated_by(*pair)) is not None]


def _separated_by(a: Region, b: Region) -> Polynomial | None:
    """The one condition that two regions disagree on; None if there is none or more than one."""
    different = [p for p, negative in a.assumed.items() if p in b.assumed and b.assumed[p] != negative]
    return different[0] if len(different) == 1 else None


def _compared(expansion: Expansion, a: Region, b: Region, condition: Polynomial) -> Result:
    fields = list(zip(_fields(expansion, a), _fields(expansion, b), strict=True))
    if all(p == q for p, q in fields):
        return Result(CONTINUOUS, EQUATION, "proved", region=a.conditions)
    found = False
    with mpmath.workdps(DIGITS):
        for below, above in _boundary_points(condition):
            left, right = (below, above) if a.assumed[condition] else (above, below)
            try:
                jumps = [abs(left(p) - right(q)) > JUMP * (1 + abs(left(p))) for p, q in fields]
            except (NotReal, ZeroDivisionError):
                continue
            if any(jumps):
                reason = f"the step jumps where {condition.text(3)} = 0"
                return Result(CONTINUOUS, EQUATION, "undecided", reason, region=a.conditions)
            found = True
    if not found:
        reason = f"no point was found where {condition.text(3)} = 0"
        return Result(CONTINUOUS, EQUATION, "undecided", reason, region=a.conditions)
    return Result(CONTINUOUS, EQUATION, "verified", region=a.conditions)


def _fields(expansion: Expansion, region: Region) -> list[Polynomial]:
    if region.recipe is not None:
        return [*region.recipe.D.ravel(), *region.recipe.Q.ravel()]
    drift, covariance = drift_and_covariance(expansion, region)
    return [*drift, *(p for row in covariance for p in row)]


def _boundary_points(p: Polynomial) -> Iterator[tuple[Values, Values]]:
    """Pairs of points next to p = 0, with p < 0 at the first, found along one coordinate or derivative at a time."""
    ring = p.ring
    moving = [n for n in sorted(p.atoms()) if ring.generators[n].kind == "state"]
    for attempt, number in itertools.product(range(TRIES), reversed(moving)):
        along = _line(ring, number, f"boundary {attempt}")
        root = _root(along, p, positive=is_positive(ring.generators[number]))
        if root is not None:
            sides = along(root - CLOSE), along(root + CLOSE)
            yield sides if sides[0](p) < 0 else (sides[1], sides[0])


def _line(ring: Ring, number: int, seed: str) -> Callable[[Value], Values]:
    """The points at which one generator takes any value, and all others have random ones."""
    free = at_random(ring, seed)
    return lambda t: evaluator(ring, {number: t}, lambda n: free(ring.power(n, 1)))


def _root(along: Callable[[Value], Values], p: Polynomial, positive: bool) -> Value | None:
    """A zero of a polynomial along a line, by bisection between points of different sign."""
    sizes = [mpmath.mpf(10) ** k for k in range(-3, 5)]
    grid = sizes if positive else [*(-t for t in reversed(sizes)), *sizes]
    function = lambda t: along(t)(p)
    try:
        signs = [function(t) for t in grid]
        for a, b, u, v in zip(grid, grid[1:], signs, signs[1:], strict=False):
            if u * v < 0:
                return mpmath.findroot(function, (a, b), solver="anderson")
    except (NotReal, ZeroDivisionError, ValueError):
        return None
    return None
