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


@lru_cache(maxsize=16)
def symmetric_rule(dim: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m, dim) and weights (m,) for expectations under N(0, I), exact to total degree 5 or 7.

    The nodes are all permutations and signs of (0, ..), (a, 0, ..), (a, a, 0, ..) and, for degree 7, (a, a, a, 0, ..);
    there are O(dim^2), O(dim^3) of them. For degree 5 the moments 1, x^2, x^4 and x^2 y^2 determine radii and weights.
    For degree 7 the radii are those of the 4-point Gauss-Hermite rule, u^2 = 3 - sqrt 6 and v^2 = 3 + sqrt 6: since
    u^6 = 6 u^4 - 3 u^2, as E x^6 = 6 E x^4 - 3 E x^2, the moment x^6 follows from x^2 and x^4. Weights may be negative.

    Source: mcnamee1967construction, whose generators these are.

    Raises:
        ValueError: for another degree, or if there are more than `MAX_NODES` nodes.
    """
    n = dim
    if degree == 5:
        if 1 + 2 * n**2 > MAX_NODES:
            raise ValueError(f"dim: a rule of degree 5 in {n} dimensions is too large")
        radii, weights = [np.sqrt(n + 2.0), np.sqrt(n / 2 + 1.0)], [(4 - n) / 2 / (n + 2) ** 2, 1 / (n + 2) ** 2]
        rings = [(1, radii[0], weights[0]), (2, radii[1], weights[1])]
    elif degree == 7:
        if 1 + 4 * n + 4 * n * (n - 1) + 4 * n * (n - 1) * (n - 2) // 3 > MAX_NODES:
            raise ValueError(f"dim: a rule of degree 7 in {n} dimensions is too large")
        u, v = np.sqrt(3 - np.sqrt(6.0)), np.sqrt(3 + np.sqrt(6.0))
        three = 1 / (8 * u**6)  # x^2 y^2 z^2
        # x^2 y^2 and x^4 y^2, then x^2 and x^4
        pair = np.linalg.solve(4 * np.array([[u**4, v**4], [u**6, v**6]]), [1 - (n - 2) / u**2, 3 - (n - 2)])
        taken = lambda k: 4 * (n - 1) * pair @ [u**k, v**k] + 4 * (n - 1) * (n - 2) * three * u**k
        one = np.linalg.solve(2 * np.array([[u**2, v**2], [u**4, v**4]]), [1 - taken(2), 3 - taken(4)])
        rings = [(1, u, one[0]), (1, v, one[1]), (2, u, pair[0]), (2, v, pair[1]), (3, u, three)]
    else:
        raise ValueError(f"degree: must be 5 or 7, got {degree}")
    nodes, weights = [np.zeros((1, n))], [np.zeros(1)]
    for count, radius, weight in rings:
        places = np.array(list(itertools.combinations(range(n), count)), int).reshape(-1, count)
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=count)))
        ring = np.zeros((len(places), len(signs), n))
        np.put_along_axis(ring, np.broadcast_to(places[:, None], (len(places), len(signs), count)), radius * signs, 2)
        nodes.append(ring.reshape(-1, n))
        weights.append(np.full(len(places) * len(signs), weight))
    weights[0][:] = 1 - sum(w.sum() for w in weights)
    return np.concatenate(nodes), np.concatenate(weights)


def noise_rule(dim: int, least: int = 4, most: int = 12, fewer: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The finest tensor Gauss-Hermite rule with `least` to `most` points a dimension that stays moderate.

    With 4 points the rule is exact to degree 7 in the noise, that is up to h^3.5 in the step size: enough for the
    local error h^3 of a second-order scheme. Where even that is too large a grid, it is the symmetric rule of degree 7.

    Args:
        dim: number of normals.
        least: points a dimension.
        most: points a dimension.
        fewer: than those, for a second rule that tells what the first one is worth.

    Raises:
        ValueError: if that is too large as well.
    """
    moderate = 3000
    points = most
    while points > least and points**dim > moderate:
        points -= 1
    if points**dim > MAX_NODES:
        return symmetric_rule(dim, 5 if fewer else 7)
    return gauss_hermite(dim, points - fewer)


def neville(h: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Polynomial extrapolation to h = 0 with an estimate of its error.

    Args:
        h: (k,) distinct step sizes, decreasing.
        values: (k, ...) values at them.

    Returns:
        The value at 0 and an error estimate of the same shape: the smallest change between neighbouring entries of
        the tableau, at the entry that it belongs to (a deeper entry may be spoilt by round-off, so the best one is
        taken by its own estimate). That estimate is far too small where the expansion holds powers such as h^(3/2),
        of which a tableau in h removes none; where the tableau in sqrt(h) ends elsewhere than both errors allow, the
        distance between the two is the error.
    """
    best, error = plain_neville(h, values)
    other, blur = plain_neville(np.sqrt(h), values)
    gap = np.abs(best - other)
    # of many entries some have an error that is far too small by chance: the largest of each decide
    other_powers = np.max(gap, initial=0.0) > 2 * (np.max(error, initial=0.0) + np.max(blur, initial=0.0))
    return best, gap + blur if other_powers else error


def plain_neville(h: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`neville` for values that are known to be a series in h."""
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
