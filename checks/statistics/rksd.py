"""Riemannian kernel Stein discrepancy on the unit sphere, for laws of which only the score is known."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from sgmcmc_verification.checks.statistics.outcome import checked_sample
from sgmcmc_verification.checks.statistics.pairs import (
    Statistic,
    Tested,
    Tile,
    bootstrap,
    pair_statistic,
    require_statistic,
)
from sgmcmc_verification.targets.numerics.arrays import ArrayLike

Zonal = Literal["vmf", "imq"]


def rksd(
    points: ArrayLike,
    scores: ArrayLike,
    *,
    kernel: Zonal = "imq",
    scale: float = 1.0,
    statistic: Statistic = "U",
    block: int = 1024,
) -> float:
    """Estimate of the squared Riemannian kernel Stein discrepancy of i.i.d. points on the unit sphere.

        RKSD^2 = E u(x, y),    u = A_x A_y k,    A f = <grad log p, grad f> + Lap f
        k = exp(kappa (x.y - 1)) (vmf)   or   k = (c^2 + |x - y|^2)^(-1/2) (imq)

    with the density p with respect to surface measure and the Laplace-Beltrami operator. With t = x.y, k = f(t), the
    tangential scores a = P_x g(x), b = P_y g(y), alpha = a.y, beta = b.x and the ambient dimension n

        u = f'' alpha beta + f' a.b + (alpha + beta) c + (1 - t^2) e - (n - 1) t c
        c = (1 - t^2) f''' - (n + 1) t f'' - (n - 1) f',   e = (1 - t^2) f'''' - (n + 3) t f''' - 2 n f''

    U is unbiased, V never negative. The square is the rate at which the flow of RSVGD, whose velocity is the gradient
    of y -> E_q A_x k(x, y), reduces the divergence of q. Blind spot: far apart modes, as `checks.statistics.ksd.ksd`.

    Source: liu2018riemannian, section 4.2 (the maximum of the directional derivative) and definition of its Stein
    discrepancy; u for any function of x.y is derived from it, and is that of the source's kernel for vmf.

    Args:
        points: (n, d), of unit length.
        scores: (n, d), a gradient of log p in the ambient space at the points; its normal part is not used.
        kernel: "vmf" or "imq".
        scale: kappa or c, positive.
        statistic: "U" or "V".
        block: pairs are done in tiles of block x block: the memory is O(block^2), whatever n.

    Raises:
        ValueError: wrong shapes, points off the sphere, values that are not finite, an argument out of range.
    """
    x, a = _checked(points, scores, kernel, scale)
    require_statistic(statistic)
    return pair_statistic(_tile(x, a, kernel, scale), len(x), statistic, block)


def rksd_test(
    points: ArrayLike,
    scores: ArrayLike,
    *,
    kernel: Zonal = "imq",
    scale: float = 1.0,
    statistic: Statistic = "U",
    replicates: int = 500,
    seed: int = 0,
    block: int = 1024,
) -> Tested:
    """`rksd` with the p-value of its bootstrap, as `checks.statistics.ksd.ksd_test`; arguments as `rksd` and there."""
    x, a = _checked(points, scores, kernel, scale)
    require_statistic(statistic)
    tile = _tile(x, a, kernel, scale)
    return bootstrap(tile, len(x), statistic, block, replicates, np.random.default_rng(seed))


def _derivatives(
    kernel: Zonal, scale: float, t: Float[np.ndarray, "rows columns"]
) -> list[Float[np.ndarray, "rows columns"]]:
    """f', f'', f''', f'''' at t."""
    if kernel == "vmf":
        value = np.exp(scale * (t - 1))
        return [scale**k * value for k in (1, 2, 3, 4)]
    inverse = 1 / (scale**2 + 2 - 2 * t)  # |x - y|^2 = 2 - 2 t
    value, found = np.sqrt(inverse), []
    for factor in (1, 3, 5, 7):
        value = factor * value * inverse
        found.append(value)
    return found


def _tile(x: Float[np.ndarray, "n d"], a: Float[np.ndarray, "n d"], kernel: Zonal, scale: float) -> Tile:
    n = x.shape[1]

    def tile(rows: slice, columns: slice) -> Float[np.ndarray, "rows columns"]:
        t = np.clip(x[rows] @ x[columns].T, -1, 1)
        f1, f2, f3, f4 = _derivatives(kernel, scale, t)
        alpha, beta = a[rows] @ x[columns].T, x[rows] @ a[columns].T
        off = 1 - t * t
        c = off * f3 - (n + 1) * t * f2 - (n - 1) * f1
        e = off * f4 - (n + 3) * t * f3 - 2 * n * f2
        return f2 * alpha * beta + f1 * (a[rows] @ a[columns].T) + (alpha + beta - (n - 1) * t) * c + off * e

    return tile


def _checked(
    points: ArrayLike, scores: ArrayLike, kernel: str, scale: float
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    """(points, tangential scores)."""
    x, g = checked_sample("points", points, 2), checked_sample("scores", scores, 2)
    if x.shape != g.shape:
        raise ValueError(f"scores has shape {g.shape}, points {x.shape}: give the score at each point")
    off = float(np.abs(np.sum(x * x, axis=1) - 1).max())
    if off > 1e-6:
        raise ValueError(f"points are off the unit sphere by up to {off:.3g} in |x|^2: divide each by its length")
    if kernel not in ("vmf", "imq"):
        raise ValueError(f"kernel is {kernel!r}: give vmf or imq")
    if not 0 < scale < np.inf:
        raise ValueError(f"scale is {scale}: give a positive number")
    return x, g - np.sum(g * x, axis=1)[:, None] * x
