"""Quadrature over noise and over auxiliary variables."""

import itertools
from functools import lru_cache

import numpy as np
from scipy import special

MAX_NODES = 70_000
"""Largest tensor grid that is built; beyond it a check has to say that it cannot decide."""


@lru_cache(maxsize=64)
def gauss_hermite(dim: int, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m, dim) and weights (m,) for expectations under N(0, I), exact to degree 2 points - 1 per coordinate.

    Raises:
        ValueError: if the grid would have more than `MAX_NODES` nodes.
    """
    if points**dim > MAX_NODES:
        raise ValueError(f"dim: a grid of {points}^{dim} nodes is too large")
    x, w = special.roots_hermitenorm(points)
    w = w / w.sum()
    if dim == 0:
        return np.zeros((1, 0)), np.ones(1)
    nodes = np.array(list(itertools.product(x, repeat=dim)))
    weights = np.array([np.prod(c) for c in itertools.product(w, repeat=dim)])
    return nodes, weights


def noise_rule(dim: int, least: int = 4, most: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """The finest tensor Gauss-Hermite rule with `least` to `most` points a dimension that stays moderate.

    With 4 points the rule is exact to degree 7 in the noise, that is up to h^3.5 in the step size: enough for the
    local error h^3 of a second-order scheme.

    Raises:
        ValueError: if even `least` points a dimension are too many.
    """
    moderate = 3000
    points = most
    while points > least and points**dim > moderate:
        points -= 1
    return gauss_hermite(dim, points)


def neville(h: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Polynomial extrapolation to h = 0 with an estimate of its error.

    Args:
        h: (k,) distinct step sizes, decreasing.
        values: (k, ...) values at them.

    Returns:
        The value at 0 and an error estimate of the same shape: the smallest change between neighbouring entries of
        the tableau, at the entry that it belongs to (a deeper entry may be spoilt by round-off, so the best one is
        taken by its own estimate).
    """
    tableau = [np.asarray(values, np.float64)[i] for i in range(len(h))]
    best, error = tableau[-1], np.full(np.shape(tableau[-1]), np.inf)
    column = tableau
    for level in range(1, len(h)):
        previous = column
        column = [
            (h[i] * previous[i + 1] - h[i + level] * previous[i]) / (h[i] - h[i + level]) for i in range(len(h) - level)
        ]
        change = np.maximum(np.abs(column[-1] - previous[-1]), np.abs(column[-1] - previous[-2]))
        take = change < error
        best = np.where(take, column[-1], best)
        error = np.where(take, change, error)
    return best, error
