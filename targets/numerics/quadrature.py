"""Exact tools that the analytic targets share: Gauss rules, cumulative distribution functions, rejection sampling."""

import itertools
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key
from scipy import linalg

from sgmcmc_verification.targets.numerics.arrays import ArrayLike

Rule = tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]
"""Points (m, d) and weights (m,) that sum to one."""
LineRule = tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]
"""Points (m,) and weights (m,)."""
Draws = Float[Array, "n d"]
Values = Float[np.ndarray, "*shape"]
"""Arguments or values of a function that works entry by entry."""
Density = Callable[[Values], Values]
Statistic = Callable[[Float[Array, "..."]], Float[Array, ""]]


@lru_cache(maxsize=64)
def standard_normal_rule(n: int) -> LineRule:
    """n-point Gauss rule for N(0, 1): points (n,), weights (n,); exact to degree 2 n - 1.

    By the eigenvalues of the Jacobi matrix of the Hermite polynomials [golub1969calculation].
    """
    return jacobi_rule(np.zeros(n), np.sqrt(np.arange(1.0, n)))


def jacobi_rule(diagonal: Float[np.ndarray, " m"], off_diagonal: Float[np.ndarray, " m-1"]) -> LineRule:
    """Gauss rule (n,), (n,) of a probability law from its Jacobi matrix [golub1969calculation]."""
    points, vectors = linalg.eigh_tridiagonal(diagonal, off_diagonal)
    weights = vectors[0] ** 2
    return points, weights / weights.sum()


def gauss_rule(points: Float[np.ndarray, " k"], weights: Float[np.ndarray, " k"], n: int) -> LineRule:
    """n-point Gauss rule (n,), (n,) of the law given by a fine rule `points` (m,), `weights` (m,), m >> n.

    Lanczos with full reorthogonalisation gives the Jacobi matrix; the result is exact to degree 2 n - 1 for the fine
    rule [golub1969calculation; gautschi2004orthogonal, section 2.2].
    """
    if not 1 <= n < len(points):
        raise ValueError(f"n: must lie between 1 and {len(points) - 1}, got {n!r}")
    basis = np.sqrt(weights / weights.sum())[:, None]
    diagonal, off_diagonal = [], []
    for _ in range(n):
        vector = points * basis[:, -1]
        diagonal.append(basis[:, -1] @ vector)
        for _ in range(2):  # twice is enough
            vector = vector - basis @ (basis.T @ vector)
        off_diagonal.append(np.linalg.norm(vector))
        basis = np.column_stack([basis, vector / off_diagonal[-1]])
    return jacobi_rule(np.array(diagonal), np.array(off_diagonal[:-1]))


def tensor_rule(dim: int, n: int) -> Rule:
    """Tensor Gauss rule for N(0, I) in `dim` dimensions: (n^dim, dim), (n^dim,)."""
    x, w = standard_normal_rule(n)
    points = np.array(list(itertools.product(x, repeat=dim)))
    weights = np.prod(np.array(list(itertools.product(w, repeat=dim))), axis=1)
    return points, weights


@lru_cache(maxsize=64)
def _legendre(n: int) -> LineRule:
    return np.polynomial.legendre.leggauss(n)


def legendre_rule(low: float, high: float, panels: int, order: int = 16) -> LineRule:
    """Composite Gauss-Legendre rule for the Lebesgue integral over (low, high): points (m,), weights (m,)."""
    x, w = _legendre(order)
    edges = np.linspace(low, high, panels + 1)
    half = (high - low) / panels / 2
    points = (edges[:-1, None] + half * (1 + x)).ravel()
    return points, np.tile(half * w, panels)


class DensityLaw:
    """Numerics of a one-dimensional law with an unnormalised density: Gauss rules and distribution function.

    Args:
        density: NumPy-vectorised, smooth on the interval; up to a constant.
        interval: (low, high) that holds the mass.
        panels: number of 16-point Gauss-Legendre panels; the integrals are exact to round-off when the density is
            resolved on a panel.
    """

    def __init__(self, density: Density, interval: tuple[float, float], panels: int = 40):
        self.density, self.interval, self.panels = density, interval, panels
        self._table: tuple[np.ndarray, np.ndarray] | None = None

    def _cumulative(self) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, "terms panels"]]:
        """Masses up to the edges (panels + 1,) and, in every panel, the integral of the density from its lower edge.

        The integrals are Legendre series (17, panels) in the coordinate that runs from -1 to 1 on the panel. They are
        computed once, on demand.
        """
        if self._table is None:
            nodes, weights = _legendre(16)
            points, _ = legendre_rule(*self.interval, self.panels)
            values = self.density(points).reshape(self.panels, 16).T
            half = (self.interval[1] - self.interval[0]) / self.panels / 2
            project = (np.arange(16) + 0.5)[:, None] * np.polynomial.legendre.legvander(nodes, 15).T * weights
            series = half * np.polynomial.legendre.legint(project @ values, lbnd=-1, axis=0)
            masses = half * (weights @ values)
            self._table = np.concatenate([[0.0], np.cumsum(masses)]), series
        return self._table

    def constant(self) -> float:
        """The integral of the density."""
        return float(self._cumulative()[0][-1])

    def cdf(self, x: ArrayLike) -> Float[np.ndarray, "..."]:
        """The distribution function, vectorised; absolute error of the order of round-off."""
        masses, series = self._cumulative()
        low, high = self.interval
        scaled = (np.clip(np.asarray(x, np.float64), low, high) - low) / (high - low) * self.panels
        cell = np.minimum(scaled.astype(int), self.panels - 1)
        inside = np.polynomial.legendre.legval(2 * (scaled - cell) - 1, series[:, cell], tensor=False)
        return np.asarray(np.clip((masses[cell] + inside) / masses[-1], 0.0, 1.0))

    def rule(self, n: int) -> Rule:
        """n-point Gauss rule of the law: points (n, 1), weights (n,); exact to degree 2 n - 1."""
        points, weights = legendre_rule(*self.interval, self.panels)
        x, w = gauss_rule(points, weights * self.density(points), n)
        return x[:, None], w


@partial(jax.jit, static_argnums=(1, 2, 3))
def rejection(
    key: Key[Array, ""],
    n: int,
    propose: Callable[[Key[Array, ""], int], Draws],
    log_accept: Callable[[Float[Array, " d"]], Float[Array, ""]],
) -> Draws:
    """n exact draws by rejection, compiled once for each n and pair of functions: define these outside of the sampler.

    Args:
        key: typed key.
        n: number of draws.
        propose: (key, n) -> proposals (n, d).
        log_accept: proposal (d,) -> log of the acceptance probability, at most 0.

    Returns:
        Draws (n, d). Every round proposes to all and fills those that are still empty, so the cost is about
        log(n) / acceptance rounds.
    """

    def attempt(key: Key[Array, ""]) -> tuple[Draws, Bool[Array, " n"]]:
        propose_key, accept_key = jax.random.split(key)
        values = propose(propose_key, n)
        levels = jax.vmap(log_accept)(values)
        return values, jnp.log(jax.random.uniform(accept_key, (n,), levels.dtype)) < levels

    return until_accepted(key, attempt)


def until_accepted(key: Key[Array, ""], attempt: Callable[[Key[Array, ""]], tuple[Draws, Bool[Array, " n"]]]) -> Draws:
    """Draws by rejection where each has a law of its own; call it under jit, for it compiles its loop.

    Args:
        key: typed key.
        attempt: key -> proposals (n, d), one for each draw, and whether they are accepted, (n,).

    Returns:
        Draws (n, d). Every round proposes to all and fills those that are still empty.
    """

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        key, values, done = carry
        key, attempt_key = jax.random.split(key)
        proposals, accepted = attempt(attempt_key)
        return key, jnp.where((done | ~accepted)[:, None], values, proposals), done | accepted

    key, first_key = jax.random.split(key)
    values, done = attempt(first_key)
    return jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), body, (key, values, done))[1]


def coordinate(index: int | tuple[int, ...]) -> Statistic:
    """Statistic: one entry of an array position."""
    return lambda position: position[index]


def power(index: int, exponent: int) -> Statistic:
    """Statistic: an integer power of one coordinate of an array position (d,)."""
    return lambda position: position[index] ** exponent


def product(i: int, j: int) -> Statistic:
    """Statistic: the product of two coordinates of an array position (d,)."""
    return lambda position: position[i] * position[j]
