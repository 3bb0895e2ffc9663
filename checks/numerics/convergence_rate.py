"""Order of convergence, from errors at several step sizes."""

from collections.abc import Callable

import numpy as np

from sgmcmc_verification.checks.numerics.quadrature import plain_neville


def slope(hs: np.ndarray, errors: np.ndarray, floor: float) -> tuple[float, float]:
    """Exponent of errors ~ h^s as h -> 0 and its error, from the entries above a round-off floor."""
    usable = np.flatnonzero(errors > floor)
    if len(usable) < 3:
        return np.inf, 0.0
    usable = usable[: np.argmax(np.diff(usable) > 1) + 1] if np.any(np.diff(usable) > 1) else usable
    e, h = errors[usable], hs[usable]
    slopes = np.log2(e[:-1] / e[1:]) / np.log2(h[:-1] / h[1:])
    value, error = plain_neville(h[1:], slopes) if len(slopes) > 2 else (slopes[-1], abs(slopes[-1] - slopes[-2]))
    return float(value), float(error)


ENOUGH = 5
"""Errors above the floor with which no more are asked for."""
LARGER, BETWEEN = 6, 4
"""Doublings of the largest step size, and step sizes a doubling, that are tried where few errors are resolved."""
JUMP = 3.0
"""Factor by which an error below the resolved ones may be smaller than their order says."""


def order_of(
    hs: np.ndarray,
    errors: np.ndarray,
    floor: float,
    exact: float,
    error_at: Callable[[float], float | None],
    larger: int = LARGER,
    between: int = BETWEEN,
) -> tuple[float, float]:
    """Exponent of errors ~ h^s as h -> 0 and its error, from at least three errors above a floor.

    Where the ladder has fewer, larger step sizes are tried, then steps between the smallest of them. The order is
    infinite where even the largest step leaves nothing but round-off; its error is infinite where there still are fewer
    than three, and where errors at smaller steps are below what the order says: a law that breaks down at large steps
    has errors that hardly depend on them.

    Args:
        hs: step sizes, decreasing.
        errors: at them.
        floor: above which errors are resolved.
        exact: what round-off leaves of an error that is none.
        error_at: step size -> error, or None where there is none (the step is unstable).
        larger: doublings at most.
        between: step sizes a doubling; 1 for none.
    """
    found = dict(zip(hs.tolist(), errors.tolist(), strict=True))
    above = lambda: [h for h in sorted(found, reverse=True) if found[h] > floor]
    largest = float(hs[0])
    for _ in range(larger):
        if len(above()) >= 3 or (error := error_at(2 * largest)) is None:
            break
        largest *= 2
        found[largest] = error
    if found[largest] <= exact:
        return np.inf, 0.0
    if len(above()) < ENOUGH:
        least = min(above(), default=largest / 4)
        more = {h: error_at(h) for h in (least * 2 ** (k / between) for k in range(1, 2 * between) if k % between)}
        found |= {h: error for h, error in more.items() if error is not None and h < largest}
    usable = above()
    if len(usable) < 3:
        return np.inf, np.inf
    h, e = np.array(usable), np.array([found[h] for h in usable])
    # the largest step sizes may be far from the limit: as many of the smallest ones as agree best
    exponent, doubt = min((slope(h[-k:], e[-k:], floor) for k in range(3, len(h) + 1)), key=lambda each: each[1])
    expected = lambda size: e[-1] * (size / h[-1]) ** (exponent + doubt)
    if any(expected(size) > JUMP * max(error, floor) for size, error in found.items() if size < h[-1]):
        return np.inf, np.inf  # what is resolved is another regime, from which the errors fall at once
    return exponent, doubt
