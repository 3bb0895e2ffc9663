"""Order of convergence, from errors at several step sizes."""

import numpy as np

from checks.numerics.quadrature import neville


def slope(hs: np.ndarray, errors: np.ndarray, floor: float) -> tuple[float, float]:
    """Exponent of errors ~ h^s as h -> 0 and its error, from the entries above a round-off floor."""
    usable = np.flatnonzero(errors > floor)
    if len(usable) < 3:
        return np.inf, 0.0
    usable = usable[: np.argmax(np.diff(usable) > 1) + 1] if np.any(np.diff(usable) > 1) else usable
    e, h = errors[usable], hs[usable]
    slopes = np.log2(e[:-1] / e[1:]) / np.log2(h[:-1] / h[1:])
    value, error = neville(h[1:], slopes) if len(slopes) > 2 else (slopes[-1], abs(slopes[-1] - slopes[-2]))
    return float(value), float(error)
